"""The adapters on NATS: outages, several processes, and what the log's epochs are for."""
