"""Solve many box QPs on a GPU, with active-set Newton steps where rounds are slow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from mercer import deadline
from mercer.array_types import Array
from mercer.backends.box_programs import Box, BoxAnswer
from mercer.backends.contract import Poll
from mercer.backends.torch.device import Device, parts, to_host
from mercer.backends.torch.nvrtc import is_compiled
from mercer.backends.torch.svm.programs import DeviceQPs, multipliers, on_device
from mercer.backends.torch.svm.rounds import (
    DeviceRounds,
    Look,
    Strand,
    Streams,
    in_turns,
    own_streams,
    split,
    wait_for_all,
)

# --- faces ---------------------------------------------------------------------------------------
#
# Newton's steps on the face of the variables that are free: for programmes on which sets crawl.
#
# Sets hold fewer variables than a machine of large cost has free ones, and then each round
# corrects what the last one left. With the variables at bounds held, the free ones and those that
# want to leave a bound, W, solve
#
#     K_WW s + r_g = F_W - epsilon * sign,    sum of s over each sum = 0,
#
# by a Cholesky factor in float64. What leaves the box is held at its edge, what is held and pulls
# inwards is let go, and the rest is solved for again, until nothing changes: the lowest point of
# the box of W. The step goes there, or to the lowest point on the way: it is feasible, the
# objective only falls, and sets go on from it. From far away most of W leaves the box, which
# tells that it is early: then something is added to the diagonal, so that the step is shorter (a
# proximal point).

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


def face_of(programmes: DeviceQPs, number: int, tol: float) -> Face:
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


def step_on(K: Tensor, programmes: DeviceQPs, face: Face, tol: float, damping: float = 1.0) -> Step:
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


def _step(K: Tensor, programmes: DeviceQPs, face: Face, tol: float, damping: float) -> Step:
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


def _move(K: Tensor, programmes: DeviceQPs, face: Face, rows: Tensor, step: Tensor) -> None:
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


# --- newton --------------------------------------------------------------------------------------
#
# When a step on the face of a programme is worth its time, counted in rounds of sets.
#
# Newton's steps of one programme use all of a card, rounds one multiprocessor for each programme:
# so they are for a few programmes that are left. Their time is at most that of the rounds before,
# and nothing here reads a clock, so that answers do not depend on what else a card does.

_FEW = 4  # programmes that go on
_LEAST = 64  # rounds between steps: a few milliseconds
_SOON = 0.1  # of the rounds so far: what comes before another look at a face that was early
_FAR = 1.5  # times the tolerance: nearer, rounds are done soon (at 3 nu-SVR took 1700 more)
_NEARER = 0.6  # of the violation where a step was in vain: what it falls to before the next, ...
_LATER = 8  # ... or times the rounds that one costs
_DAMPED, _MOST = 16.0, 256.0  # times the last, and at most: what a step in vain adds to K
_AFTER = 2  # times the rounds that a factor costs: the next step mostly takes few
_FACTOR = 24.0  # rounds that a small factor takes (3 ms): calls, and looks at what came of it
# Factors whose time rounds have taken before the first step, and before others: most programmes are
# at their ends by then, and the others will be long.
_NEWTON_FIRST, _STEP = 16, 8
_OPERATIONS = 2.7e9  # of a large factor in the time of a round, 0.13 ms: 21 x 10^12 in a second


class Newton:
    """Steps on the faces of programmes, between rounds.

    Parameters
    ----------
    matrices : sequence of (n, n) float32 tensors
        What the programmes read.
    programmes : Programmes
        What is moved.
    tol : float or array
        Largest violation at the end, of all or of each.
    """

    def __init__(
        self, matrices: Sequence[Tensor], programmes: DeviceQPs, tol: float | Array
    ) -> None:
        number = len(programmes.sizes)
        self._matrices, self._programmes = matrices, programmes
        self._tol = np.broadcast_to(tol, number).astype(float)
        self._last, self._cost = np.zeros(number), np.full(number, float(_LEAST))
        self._below, self._damping = np.full(number, np.inf), np.full(number, _DAMPED)
        self._spent = 0.0

    def due(self, going: Array, violations: Array, rounds: int) -> Array:
        """Return the programmes whose turn it is.

        Parameters
        ----------
        going : int array
            The programmes that are not at their ends.
        violations : (programmes,) array
            Where all of them stand.
        rounds : int
            How many were made so far.
        """
        if len(going) > _FEW or not self._is_paid(_FACTOR, rounds):
            return going[:0]
        since = rounds - self._last[going]
        far = violations[going] > _FAR * self._tol[going]
        nearer = violations[going] < self._below[going]
        paid = since >= np.maximum(_LEAST, self._cost[going])
        return np.asarray(
            going[far & paid & (nearer | (since >= _LATER * self._cost[going]))],
        )

    def _is_paid(self, factor: float, rounds: int) -> bool:
        """Return whether rounds so far took as long as another step may, of such factors."""
        return self._spent + (_STEP if self._spent else _NEWTON_FIRST) * factor <= rounds

    def step(self, number: int, violation: float, rounds: int) -> None:
        """Move a programme on its face, if the rounds so far have paid for it.

        Parameters
        ----------
        number : int
            Which programme.
        violation : float
            Where it stands.
        rounds : int
            How many were made so far.
        """
        tol = float(self._tol[number])
        face = face_of(self._programmes, number, tol)
        one = _FACTOR + len(face.W) ** 3 / 3 / _OPERATIONS
        self._last[number] = rounds
        if face.is_early or not self._is_paid(one, rounds):
            self._cost[number], self._below[number] = max(_LEAST, _SOON * rounds), np.inf
            return
        matrix = self._programmes.matrix
        K = self._matrices[0 if matrix is None else matrix[number]]
        first = damping = float(self._damping[number])
        while True:
            moved, factors = step_on(K, self._programmes, face, tol, damping)
            self._spent += one * factors
            if moved or damping >= _MOST:
                break
            damping *= _DAMPED
        easy = moved and damping == first
        self._damping[number] = max(1.0, damping / _DAMPED) if easy else damping
        self._cost[number] = _AFTER * one
        self._below[number] = np.inf if moved else _NEARER * violation


# --- descents ------------------------------------------------------------------------------------
#
# Many box programmes on stored float32 matrices: small sets of each, in rounds, on the card.
#
# The host only starts rounds, many at a time, and looks now and then who is done.

LEAST = 2000  # variables of the largest programme: below, a processor is done first
_DESCENTS_FIRST = (
    8  # rounds between the first looks at the clock: easy programmes need no more than some
)
_LOOKS = 4  # with so few rounds
_ROUNDS = 32  # between later looks: a few milliseconds
_PATIENCE = (
    500  # looks without a new least violation: a second or two, then solvers go on otherwise
)
_FALLEN = 0.99  # of the least violation: what counts as a new one
_VARIABLE = 4 * 2 + 8 * 6  # bytes: its row and its sum, and what a programme says of it
INT32 = np.iinfo(np.int32).max
COUNT = 1 << 15  # programmes at once: what a grid takes in its second dimension


def can_descend(boxes: Sequence[Box]) -> bool:
    """Return whether programmes are work for a card: one sum or two each, and not small."""
    if not boxes or not is_compiled():
        return False
    sizes = [len(box.gradient) for box in boxes]
    few = all(box.group is None or (0 <= box.group.min() and box.group.max() < 2) for box in boxes)
    return bool(few and sum(sizes) <= INT32 and len(boxes) < COUNT and max(sizes) >= LEAST)


def solve_boxes(
    K: Tensor,
    boxes: Sequence[Box],
    tol: float,
    max_iter: int,
    poll: Poll | None,
    device: Device,
) -> list[BoxAnswer]:
    """Solve programmes side by side, as far as the card has room; see `Backend.box_qps`.

    Parameters are those of `descend`, but for the programmes, which are on the host.
    """

    def solve(some: Sequence[Box]) -> list[BoxAnswer]:
        programmes = on_device(K, some)
        return programmes.answers(*descend([K], programmes, tol, max_iter, poll))

    needed = _VARIABLE * float(sum(len(box.gradient) for box in boxes))
    return in_turns(boxes, solve, needed, device, "a box programme")


def descend(
    matrices: Sequence[Tensor],
    programmes: DeviceQPs,
    tol: float | Array,
    max_iter: int,
    poll: Poll | None,
    only: Array | None = None,
) -> tuple[Array, Array]:
    """Move the variables of all programmes to their ends; return pair steps and violations.

    Parameters
    ----------
    matrices : sequence of (n, n) float32 tensors on a card
        What the programmes read.
    programmes : Programmes
        Programmes that `can_descend`, where the matrices are.
    tol : float or array
        Largest violation at the end, of all or of each.
    max_iter : int
        Pair steps of each.
    poll : callable or None
        Told the steps of all programmes, and the largest violation.
    only : int array, optional
        Which programmes move; all by default.
    """
    with own_streams(matrices[0]) as streams:
        limit = min(max_iter, INT32)
        going = _by_width(programmes, only)
        rounds = DeviceRounds(matrices, programmes, tol, limit)
        return _Descent(rounds, Newton(matrices, programmes, tol), limit, streams).run(going, poll)


def _by_width(programmes: DeviceQPs, only: Array | None) -> Array:
    """Return which programmes move, those alike in the width of their boxes side by side.

    Wide boxes take more steps in a round, and more rounds; one variable of each tells.
    """
    first = programmes.begin[:-1].long()
    widths = to_host(programmes.upper[first] - programmes.lower[first])
    order = np.argsort(widths, kind="stable")
    return order if only is None else order[np.isin(order, only)]


class _Descent:
    """Programmes on their way, in strands.

    Parameters
    ----------
    rounds : Rounds
        Where they stand.
    newton : Newton
        Steps on faces.
    limit : int
        Pair steps of each.
    streams : sequence
        Where strands may run.
    """

    def __init__(self, rounds: DeviceRounds, newton: Newton, limit: int, streams: Streams) -> None:
        self._rounds, self._newton, self._limit = rounds, newton, limit
        self._streams, self._progress = streams, _Progress()
        self._made = 0

    def run(self, going: Array, poll: Poll | None) -> tuple[Array, Array]:
        """Make rounds until all are at their ends; return pair steps and violations."""
        strands = split(self._rounds, going, self._streams)
        for number in count():
            some = _DESCENTS_FIRST if number < _LOOKS else _ROUNDS
            self._made += some
            looks = [self._advanced(strand, some) for strand in strands]
            look = next((one for one in reversed(looks) if one is not None), None)
            if look is None:
                continue
            asked = poll is not None and poll(int(look.steps.sum()), float(look.violations.max()))
            left = np.concatenate([strand.numbers for strand in strands])
            if asked or not len(left):
                break
            uneven = not all(len(strand.numbers) for strand in strands)
            if self._stepped(left, look) or uneven or 2 * len(left) <= len(going):
                going, strands = left, split(self._rounds, left, self._streams)
        wait_for_all(self._streams)
        self._rounds.close()
        found = self._rounds.look().read()
        return found.steps, found.violations

    def _advanced(self, strand: Strand, some: int) -> Look | None:
        """Start rounds of a strand; let those of its programmes go that were done before."""
        deadline.check()
        look = strand.advance(some) if len(strand.numbers) else None
        if look is not None:
            own = strand.numbers
            going = (look.finished[own] == 0) & (look.steps[own] < self._limit)
            going &= self._progress.is_made(look.violations, own)
            strand.only(own[going])
        return look

    def _stepped(self, left: Array, look: Look) -> bool:
        """Make steps on faces where few programmes are left; return whether there were any."""
        due = self._newton.due(left, look.violations, self._made)
        if len(due):
            wait_for_all(self._streams)
            self._rounds.close()  # F follows the steps of the last sets
        for one in due:
            self._newton.step(int(one), float(look.violations[one]), self._made)
        return len(due) > 0


def measure(matrices: Sequence[Tensor], programmes: DeviceQPs, tol: float | Array) -> Array:
    """Return the violations of all programmes where they stand; see `descend`."""
    with own_streams(matrices[0]):
        rounds = DeviceRounds(matrices, programmes, tol, 0)
        rounds.close()
        return rounds.look().read().violations


class _Progress:
    """Whether violations still fall: steps that are lost to rounding wander for ever."""

    def __init__(self) -> None:
        self._least: Array | None = None
        self._since: Array | None = None

    def is_made(self, violations: Array, own: Array) -> Array:
        """Return which of some programmes came to a new least in the last `_PATIENCE` looks."""
        if self._least is None or self._since is None:
            self._least = np.full(len(violations), np.inf)
            self._since = np.zeros(len(violations), dtype=int)
        now = violations[own]
        fell = now < _FALLEN * self._least[own]
        self._least[own] = np.where(fell, now, self._least[own])
        self._since[own] = np.where(fell, 0, self._since[own] + 1)
        return np.asarray(self._since[own] < _PATIENCE)
