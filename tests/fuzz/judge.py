"""Run a case and list what is wrong with it."""

from dataclasses import dataclass

import numpy as np

from fuzz.case import draw_case
from fuzz.invariants import ALWAYS, ON_ERROR
from fuzz.oracles import ORACLES
from fuzz.trial import Trial


@dataclass
class Finding:
    """A rule that does not hold.

    Attributes
    ----------
    rule : str
        The name of the invariant.
    message : str
        What was seen.
    case : Case
        Where.
    """

    rule: str
    message: str
    case: object

    def __str__(self):
        seed, index = self.case.seed
        head = f"# {self.case.name} [{self.rule}] seed {seed} case {index}: {self.message}"
        return f"{head}\n{self.case.script()}\n"

    @property
    def kind(self):
        """What findings are counted by: the rule, the machine, and the message without numbers."""
        words = [w for w in self.message.split() if not any(c.isdigit() for c in w)]
        return f"{self.case.name:<20} {self.rule:<24} {' '.join(words)[:90]}"


def judged(seed, index, name=None):
    """Draw, run and judge one case; return its trial and findings."""
    case = draw_case(seed, index, name)
    trial = Trial(case)
    return trial, list(findings(trial))


def findings(trial):
    """Yield what is wrong."""
    if trial.skipped:
        return
    rules = ON_ERROR if trial.error is not None else ALWAYS
    for rule in rules:
        yield from _asked(rule, trial)
    oracle = ORACLES.get(trial.case.name)
    plain = "Tuned" not in trial.case.make[-1] and trial.case.fair
    if oracle is not None and trial.error is None and plain:
        yield from _asked(oracle, trial)


def _asked(rule, trial):
    with np.errstate(all="ignore"):
        try:
            for message in rule(trial):
                yield Finding(rule.__name__, message, trial.case)
        except Exception as error:
            # a kernel that refuses to be evaluated in words may still have features to fit on
            if not (isinstance(error, ValueError) and "too far apart for float64" in str(error)):
                yield Finding(rule.__name__, f"could not be judged: {error!r}", trial.case)
