"""Data sets as lines of Python: plain ones, and all that is wrong with real ones."""

from dataclasses import dataclass

PLAIN = "rng.standard_normal((n, d))"
SHAPES = [
    PLAIN,
    PLAIN,
    "rng.integers(0, 4, (n, d)).astype(float)",
    "np.eye(d)[rng.integers(0, d, n)]",  # one-hot
    "rng.standard_normal((n // 3 + 1, d))[rng.integers(0, n // 3 + 1, n)]",  # duplicates
    "rng.uniform(0, 1, (n, d))",
    "rng.exponential(1.0, (n, d))",
    "np.repeat(rng.standard_normal((1, d)), n, axis=0)",  # all rows equal
    "np.linspace(-1, 1, n)[:, None] ** np.arange(1, d + 1)",  # nearly collinear
    "np.vstack([rng.standard_normal((n, d))[: n // 2], 9 + rng.standard_normal((n, d))])[:n]",
]
HARM = [
    "X[:, 0] = 7.0",
    "X[:, -1] = X[:, 0]",
    "X[:, -1] = X[:, 0] * (1 + 1e-9)",
    "X = X + 1e8",
    "X = X * 1e-8",
    "X = X * 1e8",
    "X = X * 10.0 ** rng.uniform(-8, 8, d)",
    "X = X * 10.0 ** rng.uniform(-3, 3, (n, 1))",
    "X[0] = 1e6",
    "X = X * 0.0",
    "X = np.where(rng.random((n, d)) < 0.8, 0.0, X)",
    "X = X + 1e-12 * rng.standard_normal((n, d))",
]
EXTREME = [f"X = X * {size}" for size in ("1e150", "1e-150", "1e200", "5e-324", "1e300", "1e-300")]
FORMATS = [
    "X = X.astype(np.float32)",
    "X = np.asfortranarray(X)",
    "X = X[::-1]",
    "X.setflags(write=False)",
    "X = X.tolist()",
    "X = pd.DataFrame(X)",
    "X = X.astype('>f8')",
    "X = X.astype(object)",
]
SPARSE = [
    "X = scipy.sparse.csr_matrix(X)",
    "X = scipy.sparse.csc_array(X)",
    "X = scipy.sparse.coo_matrix(X)",
    "X = scipy.sparse.csr_matrix(X.astype(np.float32))",
]
LABELS = [
    "y = np.arange(n) % 2",
    "y = rng.integers(0, 2, n)",
    "y = np.arange(n) % 2 * 2.0 - 1.0",
    "y = (X[:, 0] > np.median(X[:, 0])).astype(int)",
    "y = np.arange(n) % 3",
    "y = rng.integers(0, 6, n)",
    "y = np.array(['no', 'yes'])[np.arange(n) % 2]",
    "y = np.arange(n) == 0",  # one against all
    "y = (X.sum(axis=1) > 0) ^ (rng.random(n) < 0.1)",
    "y = np.zeros(n, dtype=int)",  # one class
]
TARGETS = [
    "y = rng.standard_normal(n)",
    "y = X[:, 0] + 0.1 * rng.standard_normal(n)",
    "y = np.sin(3 * X[:, 0])",
    "y = np.ones(n)",
    "y = 1e8 + rng.standard_normal(n)",
    "y = 1e-8 * rng.standard_normal(n)",
    "y = 1e150 * rng.standard_normal(n)",
    "y = np.where(np.arange(n) == 0, 1e6, rng.standard_normal(n))",
    "y = rng.integers(0, 3, n)",
]
WEIGHTS = [
    "weights = np.ones(n)",
    "weights = rng.integers(0, 3, n)",
    "weights = 10.0 ** rng.uniform(-6, 6, n)",
    "weights = 10.0 ** rng.uniform(-6, 4, n)",
    "weights = np.full(n, 1e-6)",
    "weights = (np.arange(n) < 2).astype(float)",
    "weights = np.zeros(n)",
    "weights = 1e150 * rng.random(n)",
    "weights = 1e-300 * rng.random(n)",
]
WORDS = "X = [''.join(rng.choice(list('ab'), rng.integers(0, 12))) for _ in range(n)]"


@dataclass
class Data:
    """Lines that make n, d, X, y and weights.

    Attributes
    ----------
    lines : list of str
        Python.
    rows, columns : int
        The size.
    tame : bool
        Whether numbers are ordinary, so that answers can be compared closely.
    """

    lines: list
    rows: int
    columns: int
    tame: bool


def draw_data(draw, target, positive):
    """Draw rows and what belongs to them.

    `target` is "labels", "targets", "view" (a second table) or None; `positive` asks for entries
    that are not negative.
    """
    rows = draw.one(
        [draw.integer(1, 8), draw.integer(5, 30), draw.integer(5, 60), draw.integer(50, 200)]
    )
    columns = draw.one([1, draw.integer(1, 4), draw.integer(2, 8), draw.integer(5, 20)])
    tame = draw.chance(0.35) and rows > 3
    lines = [f"rng = np.random.default_rng({draw.integer(0, 10**6)})", f"n, d = {rows}, {columns}"]
    lines.append("X = " + (PLAIN if tame else draw.one(SHAPES)))
    lines += _targets(draw, target, tame)
    if not tame:
        lines += draw.several(HARM, 3)
        lines += [draw.one(EXTREME)] * draw.chance(0.12)
    if positive:
        lines.append("X = np.abs(X)")
    lines.append("X_new = 3 * X[:4] + 1")
    return Data(lines, rows, columns, tame)


def _targets(draw, target, tame):
    if target == "labels":
        return [draw.one(LABELS[:5] if tame else LABELS)]
    if target == "targets":
        return [draw.one(TARGETS[:3] if tame else TARGETS)]
    if target == "view":
        columns = draw.integer(1, 5)
        return [f"y = X[:, :1] + rng.standard_normal((n, {columns}))"]
    return []


def draw_weights(draw, tame):
    """Draw lines for weights; none means none are given."""
    if draw.chance(0.6):
        return []
    return [draw.one(WEIGHTS[:2] if tame else WEIGHTS)]


def draw_format(draw, sparse):
    """Draw the container in which rows are handed over."""
    if draw.chance(0.6):
        return []
    return [draw.one(FORMATS + SPARSE if sparse else FORMATS)]
