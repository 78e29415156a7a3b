"""Class means, tables, Gaussian classes, nearest neighbours."""
