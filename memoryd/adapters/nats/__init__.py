"""The ports FileLog, Manifest and Workspace on NATS JetStream."""
