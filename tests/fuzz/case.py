"""A case: a few lines of Python that make data, a machine and a fit, drawn from a seed."""

from dataclasses import dataclass

from fuzz.data import draw_data, draw_format, draw_weights
from fuzz.draw import Draw
from fuzz.kernels import Drawn, draw_kernel
from fuzz.machines import FOUL, MACHINES, TUNED, draw_approximation, draw_parameters

HEAD = [
    "import mercer, mercer.compat.sklearn as compat, numpy as np, pandas as pd, scipy.sparse",
    "from mercer.kernels import *",
    "from mercer.selection import MultipleKernel, Tuned",
]
PASSES = ("max_epochs", "n_init")
NO_KERNEL = Drawn("", [])


@dataclass
class Case:
    """What is run, and what is known about it beforehand.

    Attributes
    ----------
    seed : tuple of int
        What it was drawn from.
    name : str
        The machine.
    data, make, fit : list of str
        Lines that make the data, make the machine, and fit it.
    tame : bool
        Whether numbers are ordinary and nothing limits the fit.
    fair : bool
        Whether all parameters are of the right kind.
    psd : bool
        Whether the kernel is positive semidefinite.
    parameters : dict
        The parameters, as text.
    """

    seed: tuple
    name: str
    data: list
    make: list
    fit: list
    tame: bool
    fair: bool
    psd: bool
    parameters: dict

    def script(self):
        """Write the case as a program."""
        return "\n".join([*HEAD, *self.data, *self.make, *self.fit])


def draw_case(seed, index, name=None):
    """Draw the case of a number; `name` fixes the machine."""
    draw = Draw(seed, index)
    name = draw.one(list(MACHINES)) if name is None else name
    machine = MACHINES[name]
    positive = machine.positive or draw.chance(0.2)
    target = None if machine.target == "moments" else machine.target
    data = draw_data(draw, target, positive)
    parameters = draw_parameters(draw, machine)
    parameters |= draw_approximation(seed, index, name)
    kernels = [draw_kernel(draw, positive)] if machine.kernels else [NO_KERNEL]
    kernel = kernels[0]
    for argument in machine.kernels:
        parameters[argument] = _several(kernel) if argument == "kernels" else kernel.text
    fair = not (parameters and draw.chance(0.06))
    if not fair:
        name_of_one, value = draw.one(list(parameters)), draw.one(FOUL)
        # a million passes are fair, and take as long as they say
        parameters[name_of_one] = "-1" if name_of_one in PASSES and "**" in value else value
    weights = draw_weights(draw, data.tame) if machine.weighted else []
    lines = _rows(draw, data, kernel, weights, machine)
    make = _made(draw, name, parameters)
    stopped = any(word in " ".join(make) for word in ("callback", "time_limit", "max_iter"))
    tame = data.tame and not stopped and kernel.rows
    fit = _fitted(draw, machine, weights)
    return Case((seed, index), name, lines, make, fit, tame, fair, kernel.psd, parameters)


def _several(kernel):
    """Write a list of kernels: the one that was drawn, and others that take the same rows."""
    others = "'linear', Gaussian(1.0)" if kernel.rows else "Spectrum(1), Spectrum(3)"
    return f"[{kernel.text}, {others}]"


def _rows(draw, data, kernel, weights, machine):
    lines = [*data.lines, *weights]
    if machine.target == "moments":
        lines.append("y = rng.dirichlet(np.ones(n)) @ X")
    lines += kernel.lines
    if not kernel.rows:
        return [*lines, "X_new = X[:4]"]
    return lines + draw_format(draw, kernel.sparse)


def _made(draw, name, parameters):
    arguments = dict(parameters)
    lines = []
    if draw.chance(0.05) and name in CALLED_BACK:
        lines = ["polls = []"]
        arguments["callback"] = "lambda progress: polls.append(progress) or len(polls) >= 3"
    text = ", ".join(f"{key}={value}" for key, value in arguments.items())
    module, _, short = name.rpartition(".")
    call = MACHINES[name].call or f"{module or 'mercer'}.{short}"
    made = f"{call}({text})"
    if name in TUNED and draw.chance(0.06):
        made = f"Tuned({made}, {TUNED[name]}, cv=3)"
    return [*lines, f"machine = {made}"]


CALLED_BACK = (
    "SVC",
    "SVR",
    "OneClassSVM",
    "EnclosingBall",
    "KernelRidge",
    "LogisticRegression",
    "KMeans",
    "MultipleKernel.labels",
    "MultipleKernel.targets",
)


def _fitted(draw, machine, weights):
    given = ["X"] + ["y"] * (machine.target is not None) + ["sample_weight=weights"] * bool(weights)
    line = f"machine.fit({', '.join(given)})"
    if draw.chance(0.04):
        return ["with mercer.config(memory='200 kB'):", "    " + line]
    return [line]
