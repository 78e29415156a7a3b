"""What ridge regressions on one grid share."""
