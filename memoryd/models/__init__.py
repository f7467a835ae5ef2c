"""Embedding models: what is known of them, their weights and tokenizers, the ONNX graph, and the prepared folder."""
