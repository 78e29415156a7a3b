"""Random choices from a seed: the only source of chance of a case."""

import numpy as np


class Draw:
    """Choices that depend on the numbers given and on nothing else."""

    def __init__(self, *seed):
        self.rng = np.random.default_rng(seed)

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def integer(self, low, high):
        """Draw one of low, ..., high."""
        return int(self.rng.integers(low, high + 1))

    def one(self, options):
        return options[int(self.rng.integers(len(options)))]

    def several(self, options, most):
        """Draw up to `most` different options, none being the likeliest."""
        count = min(self.integer(0, most), self.integer(0, most), len(options))
        return [options[i] for i in self.rng.permutation(len(options))[:count]]

    def power(self, low, high):
        """Draw a number between 10^low and 10^high, as text of few digits."""
        return f"{10.0 ** self.rng.uniform(low, high):.3g}"
