"""Measuring retrieval through the product: sets of documents, queries and judgements in, recall, nDCG and MRR out."""
