"""What support vector machines on one grid share."""
