"""Messages and stubs generated from `proto/memoryd/v1` by `make proto`; not edited by hand."""
