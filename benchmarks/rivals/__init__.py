"""Libraries outside Python, as contestants."""
