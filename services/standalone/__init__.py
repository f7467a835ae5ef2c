"""Standalone: all services in one process, on embedded engines. The only place that wires several services together."""
