"""All oracles, by the name of the estimator."""

from oracle import classes, margins, partitions, projection, regression

FAMILIES = (regression, margins, projection, partitions, classes)
ORACLES = {name: oracle for family in FAMILIES for name, oracle in family.ORACLES.items()}
