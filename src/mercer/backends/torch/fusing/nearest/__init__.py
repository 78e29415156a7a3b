"""Which columns are near to each row: the nearest one, or candidates for the k nearest."""
