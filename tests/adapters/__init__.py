"""What single adapters do beyond their ports."""
