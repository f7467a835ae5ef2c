"""What memory a long queue and a large file take."""
