"""The pure rules."""
