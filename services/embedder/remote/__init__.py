"""Embedding models of a provider, behind the OpenAI API that most of them speak."""
