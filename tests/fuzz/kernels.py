"""Kernels as Python text, from the whole algebra."""

from dataclasses import dataclass

from fuzz.data import WORDS

CALLABLES = {
    "FromCallable(lambda A, B: np.clip(A, -9, 9) @ np.clip(B, -9, 9).T)": True,
    "FromCallable(lambda A, B: np.exp(-abs(A[:, :1] - B[:, 0])))": True,
    "FromCallable(lambda A, B: np.cos(A[:, :1] - B[:, 0]) - 0.5, psd=False)": False,
    "FromFeatures(np.tanh)": True,
}
INDEFINITE = [
    "X = rng.standard_normal((n, n)); X = X + X.T",
    "X = -abs(X[:, :1] - X[:, 0])",
    "X = np.tanh(np.clip(X, -9, 9) @ np.clip(X, -9, 9).T - 1)",
]


@dataclass
class Drawn:
    """A kernel's text and what goes with it.

    Attributes
    ----------
    text : str
        The kernel, as written in Python.
    lines : list of str
        What must be done to X first.
    psd : bool
        Whether it is positive semidefinite.
    rows : bool
        Whether X are rows of numbers.
    sparse : bool
        Whether sparse rows may be tried.
    """

    text: str
    lines: list
    psd: bool = True
    rows: bool = True
    sparse: bool = True


def draw_kernel(draw, positive):
    """Draw any kernel; `positive` says that entries of X are not negative."""
    kind = draw.integer(0, 19)
    if kind == 0:
        base = draw.one(["Gaussian(1.0)", "Linear()", "Laplacian(0.5)"])
        return Drawn("Precomputed()", [f"X = {base}(X, X)"], rows=False, sparse=False)
    if kind == 1:
        return Drawn("Precomputed()", [draw.one(INDEFINITE)], psd=False, rows=False, sparse=False)
    if kind == 2:
        text = draw.one(["Spectrum(2)", "Subsequence(2, 0.5)", "Spectrum(1) + Constant(1.0)"])
        return Drawn(text, [WORDS], rows=False, sparse=False)
    if kind == 3:
        text = draw.one(list(CALLABLES))
        return Drawn(text, [], psd=CALLABLES[text], sparse=False)
    if kind < 6:
        return Drawn(draw.one(["'gaussian'", "'linear'", "'polynomial(2) + linear'"]), [])
    text, psd = _leaf(draw, positive)
    for _ in range(min(draw.integer(0, 2), draw.integer(0, 2))):
        text, psd = _composed(draw, text, psd, positive)
    return Drawn(text, [], psd=psd)


def _scale(draw):
    return draw.power(-4, 4) if draw.chance(0.3) else draw.power(-1, 1)


def _leaf(draw, positive):
    scale = _scale(draw)
    valid = [
        "Linear()",
        "Linear()",
        f"Gaussian({scale})",
        f"Gaussian({scale})",
        f"Laplacian({scale})",
        f"Matern({draw.one(['0.5', '1.5', '2.5'])}, {scale})",
        f"RationalQuadratic({draw.power(-1, 1)}, {scale})",
        f"Polynomial({draw.integer(1, 4)}, {draw.one(['0.0', '1.0', scale])})",
        "Cosine()",
        f"Anova({draw.integer(1, 3)})",
        "AllSubsets()",
        f"Constant({scale})",
    ]
    if positive:
        valid += [f"ChiSquared({scale})", "Intersection()", "Tanimoto()"]
    if draw.chance(0.05):
        return f"Sigmoid({draw.power(-2, 0)}, {draw.one(['-1.0', '0.5'])})", False
    return draw.one(valid), True


def _composed(draw, text, psd, positive):
    other, also = _leaf(draw, positive)
    return draw.one(
        [
            (f"{text} + {other}", psd and also),
            (f"({text}) * ({other})", psd and also),
            (f"{draw.power(-3, 3)} * ({text})", psd),
            (f"({text}) ** 2", psd),
            (f"({text}).normalized()", psd),
            (f"({text}).on([0])", psd),
            (f"exp({text})", psd),
        ]
    )
