"""All oracles, by the name of the estimator."""

from oracle import margins, partitions, projection, regression

ORACLES = {**regression.ORACLES, **margins.ORACLES, **projection.ORACLES, **partitions.ORACLES}
