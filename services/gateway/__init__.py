"""The gateway: the only service that agents see. Keys and tenants, bounds, memory_search, memory_get, status."""
