"""Support vector machines of a grid: all folds and costs at once on one stored K."""

import numpy as np
import torch

from benchmarks.card.setting import CARD, SMALL, classes, milliseconds, rng, show
from mercer.backends.boxes import Box, BoxPath, PathStep
from mercer.backends.torch.device_matrix import DeviceMatrix
from mercer.backends.torch.pairs import TorchPairs
from mercer.expression import Exp, SqDist


def programmes() -> None:
    """Solve paths of 50 costs in 10 folds; violations are computed anew in float64."""
    X, y = classes(10_000, 100, 2)
    sign, fold = 2.0 * y - 1.0, rng.integers(0, 10, len(y))
    expression = Exp(-0.005 * SqDist())
    matrix = TorchPairs(expression, X, None, np.float32, CARD, fused=not SMALL).stored()
    assert isinstance(matrix, DeviceMatrix)
    steps = [PathStep(bound=C, start=k - 1) for k, C in enumerate(np.geomspace(1e-3, 1e3, 50))]
    paths = []
    for left_out in range(10):
        rows = np.flatnonzero(fold != left_out)
        s = sign[rows]
        box = Box(s, np.zeros(len(rows)), np.minimum(s, 0.0), np.maximum(s, 0.0), rows=rows)
        paths.append(BoxPath(box, np.zeros(1), steps, np.flatnonzero(fold == left_out)))
    tol = 1e-3
    time = milliseconds(lambda: matrix.box_paths(paths, tol, 10**7, None), 3)
    answers, worst, K = matrix.box_paths(paths, tol, 10**7, None), 0.0, matrix.tensor
    for path, answer in zip(paths, answers, strict=True):
        k = torch.from_numpy(path.box.rows).to(CARD.name)
        b = torch.from_numpy(answer.b.T).to(CARD.name)
        F = path.box.gradient[:, None] - (K[k][:, k].double() @ b).cpu().numpy()
        for j, step in enumerate(steps):
            rising = F[answer.b[j] < step.bound * path.box.upper, j]
            falling = F[answer.b[j] > step.bound * path.box.lower, j]
            worst = max(worst, rising.max() - falling.min())
    made = sum(int(answer.iterations.sum()) for answer in answers)
    more = f"{made:.2g} steps, violation in float64 {worst:.2e}"
    show("SVM, 10 folds x 50 costs, n = 10000 x 100", f"{time / 1e3:.2f} s", "0.3 s", more)
