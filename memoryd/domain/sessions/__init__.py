"""Session transcripts: what of them may be kept, without the secrets that people paste into conversations."""
