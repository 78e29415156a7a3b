"""What can be said of a stream whose rows are gone: how they were met, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.certificates.base import Certificate


@dataclass(frozen=True)
class StreamQuantities:
    """Measures of a machine that learned from a stream.

    Attributes
    ----------
    rows : float
        Rows seen, or their total weight.
    mean_loss : float
        Mean loss of the rows, each scored before it was learned.
    """

    rows: float
    mean_loss: float


def of_stream(rows: float, mean_loss: float) -> Certificate:
    """State what is known of a stream: nothing is proven, so the verdict is never that it is."""
    statement = (
        "the rows of a stream are not kept, so nothing can be proven about them; scored before it "
        f"was learned, a row had a mean loss of {mean_loss:.3g}"
    )
    return Certificate(False, StreamQuantities(rows, mean_loss), 0.0, statement)
