"""Independent components and projection pursuit."""
