"""Pure rules: values, chunking, outlines, text analysis, scores. No I/O, and nothing of ours is imported but this."""
