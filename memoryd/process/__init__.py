"""What every process of memoryd shares: its settings, its end, and how it waits for what it depends on."""
