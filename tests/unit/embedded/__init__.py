"""What the adapters on SQLite and qdrant-edge do beyond their ports: restarts, damage, full disks, locks."""
