"""A clock for tests of time limits: time goes by with the looks at it, not with the machine."""

from dataclasses import dataclass


@dataclass
class Ticking:
    """A clock that goes on by `step` seconds at every reading; put it into `deadline.clock`."""

    step: float
    reads: int = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.reads * self.step
