"""The workspace service on real folders and a real file log."""
