"""memoryd: hybrid retrieval over the Markdown memory of AI agents. This package is what the services share."""
