"""The same in six processes on NATS, Qdrant's wire and OpenSearch."""
