"""What adapters do beyond their ports: failing engines, damaged files, resources."""
