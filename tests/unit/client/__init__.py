"""The client against a real server in process."""
