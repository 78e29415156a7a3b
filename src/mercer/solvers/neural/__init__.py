"""Training of networks, with torch."""
