"""What is recorded of a request, and where it goes."""
