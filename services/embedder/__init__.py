"""The embedder: models behind one interface, batches by token budget, and a lane in which queries never wait."""
