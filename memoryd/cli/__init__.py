"""The command line: `memoryd serve`, `search`, `get`, `index`, `status`, and what looks after a deployment."""
