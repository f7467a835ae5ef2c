"""The command line: `memoryd serve`, `search`, `get`, `status`, `index`, `model`, `key`, `eval`."""
