"""One suite per port, run against every adapter of it."""
