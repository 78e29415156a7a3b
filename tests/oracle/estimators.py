"""All oracles, by the name of the estimator."""

from oracle import classes, margins, partitions, projection, regression
from oracle.draw import Draw

FAMILIES = (regression, margins, projection, partitions, classes)
ORACLES = {name: oracle for family in FAMILIES for name, oracle in family.ORACLES.items()}


def findings(name: str, draw: Draw) -> list[str] | None:
    """Return what is false about a fit; None if it was refused, or is not certified."""
    make, check = ORACLES[name]
    fit = make(draw)
    if not fit.run():
        return None
    words = f"{name} {draw.seed}: {fit.machine!r} {fit.X.shape} {fit.harm}"
    return [f"{words}: {message}" for message in check(fit)]
