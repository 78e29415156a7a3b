"""Newton's steps on the face of the variables that are free: for programmes on which sets crawl.

Sets hold fewer variables than a machine of large cost has free ones, and then each round corrects
what the last one left. With the variables at bounds held, the free ones and those that want to
leave a bound, W, solve

    K_WW s + r_g = F_W - epsilon * sign,    sum of s over each sum = 0,

by a Cholesky factor in float64. What leaves the box is held at its edge, what is held and pulls
inwards is let go, and the rest is solved for again, until nothing changes: the lowest point of the
box of W. The step goes there, or to the lowest point on the way: it is feasible, the objective only
falls, and sets go on from it. From far away most of W leaves the box, which tells that it is early:
then something is added to the diagonal, so that the step is shorter (a proximal point).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch

from mercer import deadline
from mercer.backends.torch.boxes.programmes import Programmes, multipliers
from mercer.backends.torch.device import parts

Tensor: TypeAlias = torch.Tensor

LARGEST = 12_000  # variables of W: a factor of more takes longer than the rounds that it saves
_FACTORS = 24  # of a step at most
_JOIN = 0.4  # of W: what may be at bounds now
_EARLY = 0.5  # of W: where so many leave the box at once, the search leads nowhere
_FEWER = 0.9  # of the changes two factors before: with more, nothing is let go of any more
_ENTERING = 1e-3  # of the violation, and ...
_JOINING = 0.45  # ... of the tolerance: what pulls less than both stays at its bound
_LETTING_GO = 0.1  # of the tolerance: what pulls less inwards stays held
_OWED = 1e-13  # of the sum of magnitudes of a step: what rounding leaves of its sum
_ENTRIES = 1 << 27  # of K, widened to float64 at a time


class Face(NamedTuple):
    """Some variables of a programme, and the quadratic function of their step.

    Attributes
    ----------
    own : slice
        All variables of the programme.
    W : (w,) int64 tensor
        Which of these may move.
    g : (w,) float64 tensor
        The slope along each, on the side of zero that it is on, less the multiplier of its sum.
    low, high : (w,) float64 tensors
        Where each may go to: its bounds, and zero where a price changes there.
    sums : (w, sums) float64 tensor
        One where a variable is in a sum.
    joining : int
        How many of them are at bounds now.
    """

    own: slice
    W: Tensor
    g: Tensor
    low: Tensor
    high: Tensor
    sums: Tensor
    joining: int

    @property
    def is_early(self) -> bool:
        """Whether so many want to leave their bounds that most would be back there soon."""
        return not 0 < len(self.W) <= LARGEST or self.joining > _JOIN * len(self.W)


class Step(NamedTuple):
    """What became of a step: whether the programme moved, and how many factors were made."""

    moved: bool
    factors: int


def face_of(programmes: Programmes, number: int, tol: float) -> Face:
    """Return the face of a programme: free variables, and those that want to leave their bounds.

    Parameters
    ----------
    programmes : Programmes
        All programmes.
    number : int
        Which one.
    tol : float
        Largest violation at the end.
    """
    first = sum(programmes.sizes[:number])
    own = slice(first, first + programmes.sizes[number])
    rising, falling = programmes.sides(own)
    sum_of = torch.zeros_like(rising, dtype=torch.int64)
    if programmes.sums is not None:
        sum_of = programmes.sums[own].long()
    count = 1 if programmes.sums is None else 2
    members = sum_of == torch.arange(count, device=sum_of.device)[:, None]
    top, bottom = (
        torch.where(members, rising, -torch.inf),
        torch.where(members, falling, torch.inf),
    )
    level = multipliers(top, bottom)[sum_of]
    violation = float((top.amax(dim=1) - bottom.amin(dim=1)).amax())
    free = rising == falling
    pull = torch.maximum(rising - level, level - falling)
    W = (free | (pull > max(_ENTERING * violation, _JOINING * tol))).nonzero()[:, 0]

    b, lower, upper = (x[own][W] for x in (programmes.b, programmes.lower, programmes.upper))
    g = programmes.F[own][W] - level[W]
    if programmes.epsilon is not None:  # at zero a variable goes to the side it is pulled to
        epsilon = programmes.epsilon[own][W]
        rises = torch.where(b != 0, b > 0, rising[W] > level[W])
        g = g - torch.where(rises, epsilon, -epsilon)
        lower = torch.where((epsilon > 0) & rises, lower.clamp(min=0.0), lower)
        upper = torch.where((epsilon > 0) & ~rises, upper.clamp(max=0.0), upper)
    joining = len(W) - int(free.sum())
    return Face(own, W, g, lower, upper, members.T[W].double(), joining)


def step_on(
    K: Tensor, programmes: Programmes, face: Face, tol: float, damping: float = 1.0
) -> Step:
    """Move a programme to the lowest point of its face, or towards it.

    Parameters
    ----------
    K : (n, n) float32 tensor
        The matrix of the programme.
    programmes : Programmes
        All programmes; b and F of this one change.
    face : Face
        Its face.
    tol : float
        Largest violation at the end.
    damping : float
        Times what the rounding of K asks for on the diagonal.
    """
    try:
        return _step(K, programmes, face, tol, damping)
    except torch.cuda.OutOfMemoryError:  # sets need less
        torch.cuda.empty_cache()
        return Step(False, 0)


def _step(K: Tensor, programmes: Programmes, face: Face, tol: float, damping: float) -> Step:
    rows = programmes.rows[face.own].long()[face.W]
    A = K[rows[:, None], rows].double()
    if programmes.shift is not None:
        A.diagonal().add_(programmes.shift[face.own][face.W])
    b = programmes.b[face.own][face.W]
    # K is positive semidefinite but for its rounding; what that leaves, later steps take
    rounding = torch.finfo(torch.float32).eps * len(A) ** 0.5 * float(A.diagonal().abs().amax())
    found, factors = _lowest(A, face, b, damping * rounding, _LETTING_GO * tol)
    if found is None:
        return Step(False, factors)
    step = found - b
    slope, bend = float(face.g @ step), float(step @ (A @ step))
    owed = float((face.sums.T @ step).abs().amax())
    if not slope > 0 or owed > _OWED * float(step.abs().sum()):  # sums are kept, or nothing moves
        return Step(False, factors)
    if slope < bend:
        found = torch.clamp(b + (slope / bend) * step, face.low, face.high)
    _move(K, programmes, face, rows, found - b)
    programmes.b[face.own.start + face.W] = found  # what ends on an edge is there exactly
    return Step(True, factors)


def _lowest(
    A: Tensor, face: Face, b: Tensor, more: float, least: float
) -> tuple[Tensor | None, int]:
    """Return where the function, with more on its diagonal, is lowest, and the factors it took."""
    low, high = face.low - b, face.high - b
    held = torch.zeros(len(b), dtype=torch.int8, device=b.device)
    before, releases = [_EARLY * len(b)] * 2, True
    for factors in range(1, _FACTORS + 1):
        deadline.check()
        edges = torch.where(held > 0, high, torch.where(held < 0, low, 0.0))
        solved = _solved(A, face, edges, held, more)
        if solved is None:
            return None, factors
        step, pull = solved
        over, under = (held == 0) & (step > high), (held == 0) & (step < low)
        back = ((held > 0) & (pull < -least)) | ((held < 0) & (pull > least))
        back &= releases
        changes = int((over | under | back).sum())
        if not changes:
            inside = torch.clamp(b + step, face.low, face.high)  # a sum may round past an edge
            inside = torch.where(held > 0, face.high, torch.where(held < 0, face.low, inside))
            return inside, factors
        if factors == 1 and changes > before[0]:
            return None, factors
        releases = releases and changes <= _FEWER * before[0]
        before = [before[1], float(changes)]
        held = torch.where(over, 1, torch.where(under, -1, torch.where(back, 0, held)))
    return None, _FACTORS


def _solved(
    A: Tensor, face: Face, step: Tensor, held: Tensor, more: float
) -> tuple[Tensor, Tensor] | None:
    """Solve for the variables that are not held; return the step and what pulls at each then."""
    inside = (held == 0).nonzero()[:, 0]
    sums = face.sums[inside]
    has = sums.any(dim=0)
    if not len(inside):
        return None
    some = A[inside[:, None], inside]
    some.diagonal().add_(more)
    L, info = torch.linalg.cholesky_ex(some)
    if int(info):
        return None
    owed = face.sums.T @ step
    if bool(((owed != 0) & ~has).any()):  # all of a sum are held, and no one is left to pay
        return None
    right = (face.g - A @ step)[inside]
    solved = torch.cholesky_solve(torch.cat([right[:, None], sums], 1), L)
    corner = sums.T @ solved[:, 1:] + torch.diag((~has).double())
    r, failed = torch.linalg.solve_ex(corner, sums.T @ solved[:, 0] + owed)
    mine = solved[:, 0] - solved[:, 1:] @ r
    # an almost singular K leaves the sums inexact
    mine += sums @ ((-owed - sums.T @ mine) / sums.sum(dim=0).clamp(min=1.0))
    step = step.index_copy(0, inside, mine)
    if int(failed) or not bool(step.isfinite().all()):
        return None
    return step, face.g - A @ step - more * step - face.sums @ r


def _move(K: Tensor, programmes: Programmes, face: Face, rows: Tensor, step: Tensor) -> None:
    """Let F of all variables of a programme follow a step of some of them."""
    total = torch.zeros(len(K), dtype=torch.float64, device=K.device)
    used = step.nonzero()[:, 0]
    for part in parts(len(used), max(1, _ENTRIES // len(K))):
        some = used[part]
        total += step[some] @ K[rows[some]].double()
    own, at = face.own, face.own.start + face.W
    programmes.F[own] -= total[programmes.rows[own].long()]
    if programmes.shift is not None:
        programmes.F[at] -= programmes.shift[at] * step
