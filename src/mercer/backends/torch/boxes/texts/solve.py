"""The CUDA text of `solve`, which solves a small set of the variables of a programme.

A block has one programme. Of what the blocks of `follow` found, it takes the worst, beside free
variables of the last set; without these, sets take turns with one another's variables (covertype,
6000 rows, C = 1 and 10: 422 and 3429 rounds instead of 131 and 192). It gathers K between them into
shared memory, and there one warp makes second-order pair steps, in which nobody waits for anybody.
Coefficients are float64, so that bounds and sums hold.
"""

from __future__ import annotations

from mercer.backends.torch.boxes.texts.largest_keys import LARGEST_KEYS
from mercer.backends.torch.boxes.texts.parts import COMMON, defined
from mercer.backends.torch.boxes.texts.placed_keys import PLACED_KEYS

SOLVE = "solve"

_SOLVE = r"""
#define KEPT (SET / 2)
#define BLOCKS (SET <= 128 ? 2 : 1)
#define PER ((SET + LANES - 1) / LANES)
#define WARPS (THREADS / LANES)
#define STRIDE (SET + 1 - SET % 2)
// beside F from which the price of a variable's own side is taken: of the other side, twice that
#define PRICE_UP(c, a) ((c) & RISES ? (TUBE ? UP(epsilon[a], c) + side[a] : 0.f) : (float)-INF)
#define PRICE_LOW(c, a) ((c) & FALLS ? (TUBE ? LOW(epsilon[a], c) + side[a] : 0.f) : (float)INF)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) solve(
    const unsigned long long *matrices, const int *strides, const int *active, const int *begin,
    const int *rows, const double *lowers, const double *uppers, const double *epsilons,
    const int *sums, const double *shifts, double *coefficients, double *gradients,
    int *finished, int *counts, int *moved_rows, double *moves, const double *values,
    const int *numbers, int *members, int *sizes, int *steps, double *violations, int width,
    const double *tols, double share, int inner, int limit) {
  extern __shared__ float between[];
  __shared__ double best[2 * SUMS][GROUPS], edges[2 * SUMS];
  __shared__ int who[2 * SUMS][GROUPS], picked[2 * SUMS][SET / (2 * SUMS)];
  __shared__ int chosen[2 * SUMS + 2], made;
  __shared__ double b[SET], old[SET], lower[SET], upper[SET];
  __shared__ float epsilon[SET], side[SET], diagonal[SET], F[SET];
  __shared__ int member[SET], last[SET], row[SET], own_sum[SET];
  const int p = active[blockIdx.x], first = begin[p], m = begin[p + 1] - first;
  if (finished[p]) return;
  const float *K = (const float *)matrices[p];
  const long long ld = strides[p];
  const double tol = tols[p];
  const int groups = (m + width - 1) / width, t = threadIdx.x;
  for (int q = t; q < 2 * SUMS * groups; q += THREADS) {
    const int e = q / groups, place = (2 * SUMS * p + e) * GROUPS + q % groups;
    best[e][q % groups] = values[place];
    who[e][q % groups] = numbers[place];
  }
  for (int r = t; r < 2 * SUMS + 2; r += THREADS) chosen[r] = 0;
  __syncthreads();
  // those of the last set that are free stay, the newest first, if they are at most half of it
  const int before_now = sizes[p];
  for (int a = t; a < before_now; a += THREADS) {
    const int k = members[p * SET + a];
    const double now = coefficients[first + k];
    const bool free = now < uppers[first + k] && now > lowers[first + k];
    last[a] = free ? k : NONE;
    if (free) atomicAdd(chosen + 2 * SUMS, 1);
  }
  for (int e = t / LANES; e < 2 * SUMS; e += WARPS) {
    double most = -INF;
    int unused = NONE;
    for (int q = t % LANES; q < groups; q += LANES) most = fmax(most, best[e][q]);
    in_warp(most, unused);
    if (!(t % LANES)) edges[e] = most;
  }
  __syncthreads();
  double gap = -INF;
  for (int g = 0; g < SUMS; ++g) gap = fmax(gap, edges[2 * g] + edges[2 * g + 1]);
  if (!t) violations[p] = gap;
  if (!(gap > tol) || steps[p] >= limit) {
    if (!t) { counts[p] = 0; finished[p] = !(gap > tol); }
    return;
  }

  // of the others, half are those that most want to rise, half those that most want to fall; who
  // is first of a group in both goes to the side where less is missing to the worst
  const int quota = (SET - min(chosen[2 * SUMS], KEPT)) / (2 * SUMS);
  for (int e = t / LANES; e < 2 * SUMS; e += WARPS) {
    unsigned key[KEYS];  // of floats that are not negative: in the order of the numbers
#pragma unroll
    for (int r = 0; r < KEYS; ++r) {
      const int q = t % LANES + r * LANES;
      key[r] = 0;
      if (q >= groups || !(best[e][q] > -edges[e ^ 1])) continue;
      const double missing = edges[e] - best[e][q];
      if (who[e][q] == who[e ^ 1][q]) {
        const double there = edges[e ^ 1] - best[e ^ 1][q];
        if (e & 1 ? missing >= there : missing > there) continue;
      }
      key[r] = ~__float_as_uint((float)missing);
    }
    const int count = taken(key, who[e], quota, picked[e]);
    if (!(t % LANES)) chosen[e] = count;
  }
  __syncthreads();
  int fresh = 0;
  for (int e = 0; e < 2 * SUMS; ++e) {
    for (int r = t; r < chosen[e]; r += THREADS) member[fresh + r] = picked[e][r];
    fresh += chosen[e];
  }
  __syncthreads();
  for (int a = t; a < before_now; a += THREADS)
    for (int r = 0; r < fresh; ++r)
      if (member[r] == last[a]) last[a] = NONE;
  __syncthreads();
  if (t < LANES) {
    int count = fresh;
    for (int q = 0; q < PER; ++q) {
      const int a = t + q * LANES;
      const bool kept = a < before_now && last[a] != NONE;
      int before;
      const int all = counted(kept, before);
      if (kept && count + before < SET) member[count + before] = last[a];
      count += all;
    }
    if (!t) chosen[2 * SUMS + 1] = min(count, SET) - fresh;
  }
  __syncthreads();
  const int size = fresh + chosen[2 * SUMS + 1];
  for (int a = t; a < size; a += THREADS) {
    const int k = first + member[a];
    row[a] = rows[k];
    b[a] = old[a] = coefficients[k];
    lower[a] = lowers[k]; upper[a] = uppers[k];
    epsilon[a] = TUBE ? (float)epsilons[k] : 0.f;
    const int g = SUMS > 1 ? sums[k] : 0;
    own_sum[a] = g;
    // a level is taken off F, and the price of the side it is on: float32 then resolves the rest
    const double high = edges[2 * g], low = -edges[2 * g + 1];
    const double rest = gradients[k] - (fabs(high - low) < INF ? 0.5 * (high + low) : 0.0);
    const double price = TUBE ? epsilons[k] : 0.0;
    const bool upper_side = b[a] > 0 || (b[a] == 0 && rest > 0);
    side[a] = upper_side ? (float)price : (float)-price;
    F[a] = (float)(upper_side ? rest - price : rest + price);
  }
  __syncthreads();
  // K between them, from half of its entries; rows of an odd length meet no bank twice
  for (int a = t / LANES; a < size; a += WARPS) {
    const float *from = K + row[a] * ld;
    float q[PER];
#pragma unroll
    for (int r = 0; r < PER; ++r) {
      const int c = t % LANES + r * LANES;
      q[r] = c <= a ? __ldg(from + row[c]) : 0.f;
    }
#pragma unroll
    for (int r = 0; r < PER; ++r) {
      const int c = t % LANES + r * LANES;
      if (c <= a) between[a * STRIDE + c] = between[c * STRIDE + a] = q[r];
    }
  }
  __syncthreads();
  for (int a = t; a < size; a += THREADS) {
    if (SHIFTED) between[a * STRIDE + a] += (float)shifts[first + member[a]];
    diagonal[a] = between[a * STRIDE + a];
  }
  __syncthreads();

  if (t < LANES) {
    // F, and what is added to it on the way up and on the way down: infinite for what cannot move,
    // and for places past the last, of which nothing is read: a NaN there would be the largest key
    // of the curvature along a pair, at least `flat` is left by rounding
    float f[PER], up[PER], low[PER], own[PER], flat[PER];
    int mine[PER];
#pragma unroll
    for (int q = 0; q < PER; ++q) {
      const int a = t + q * LANES;
      const bool in = a < size;
      const int c = in ? flags(b[a], lower[a], upper[a]) : 0;
      f[q] = in ? F[a] : 0.f; own[q] = in ? diagonal[a] : 1.f; mine[q] = in ? own_sum[a] : 0;
      up[q] = PRICE_UP(c, a); low[q] = PRICE_LOW(c, a);
      flat[q] = fmaxf(1e-12f * own[q], 1e-37f);
    }
    const float least = (float)-INF, aim = (float)fmax(0.5 * tol, share * gap);
    const int most = min(inner, limit - steps[p]);
    int s = 0;
    for (; s < most; ++s) {
      float v = least, u = least;
      int i = 0, in_sum = 0;
#pragma unroll
      for (int g = 0; g < SUMS; ++g) {
        unsigned top = 0;
        float deep = least;
#pragma unroll
        for (int q = 0; q < PER; ++q) {
          if (SUMS > 1 && mine[q] != g) continue;
          const unsigned rising = placed(ordered(f[q] + up[q]), t + q * LANES);
          top = LARGER(top, rising);
          deep = fmaxf(deep, -(f[q] + low[q]));
        }
        top = largest(top);
        // rounded down: a variable is no partner of its own
        const float high = top < FINITE ? least : number(top & ~PLACES);
        const float fall = number(largest(ordered(deep)));
        if (!g || high + fall > v + u) { v = high; u = fall; i = top & PLACES; in_sum = g; }
      }
      if (!(v + u > aim)) break;
      const float *Ki = between + i * STRIDE;
      const float di = diagonal[i];
      const double bi = b[i];
      const double highest = TUBE && bi < 0 && epsilon[i] > 0 ? 0.0 : upper[i];
      const double room = highest - bi;
      unsigned gain = 0;
      float wanted = 0.f, Ki_own[PER];
#pragma unroll
      for (int q = 0; q < PER; ++q) {
        const int a = t + q * LANES;
        const float d = v - (f[q] + low[q]);
        const bool falls = d > 0.f && (SUMS == 1 || mine[q] == in_sum);
        Ki_own[q] = a < size ? Ki[a] : 0.f;
        const float bend = fmaxf(di + own[q] - 2.f * Ki_own[q], flat[q]);
        const float by = __fdividef(d, bend);
        const unsigned key = falls ? placed(__float_as_uint(d * by), a) : 0u;
        if (key > gain) { gain = key; wanted = by; }
      }
      gain = largest(gain);
      if (gain <= PLACES) break;
      const int j = gain & PLACES;
      const float *Kj = between + j * STRIDE;
      const double bj = b[j];
      const double lowest = TUBE && bj > 0 && epsilon[j] > 0 ? 0.0 : lower[j];
      const double down = bj - lowest;
      double step = __shfl_sync(ALL, wanted, j % LANES);
      step = down < step ? down : step;
      step = room < step ? room : step;
      const double ni = step == room ? highest : bi + step;
      const double nj = step == down ? lowest : bj - step;
      const int ci = flags(ni, lower[i], upper[i]), cj = flags(nj, lower[j], upper[j]);
      const float ui = PRICE_UP(ci, i), li = PRICE_LOW(ci, i);
      const float uj = PRICE_UP(cj, j), lj = PRICE_LOW(cj, j);
      __syncwarp();
      if (!t) { b[i] = ni; b[j] = nj; }
      const float by = (float)step;
#pragma unroll
      for (int q = 0; q < PER; ++q) {
        const int a = t + q * LANES;
        f[q] -= by * (Ki_own[q] - (a < size ? Kj[a] : 0.f));
        up[q] = a == i ? ui : a == j ? uj : up[q];
        low[q] = a == i ? li : a == j ? lj : low[q];
      }
      __syncwarp();
    }
    if (!t) made = s;
  }
  __syncthreads();

  // what moved, in the order of the set; F of the set itself takes what is on the diagonal
  for (int a = t; a < size; a += THREADS) {
    const int k = first + member[a];
    coefficients[k] = b[a];
    members[p * SET + a] = member[a];
    if (SHIFTED) gradients[k] -= (b[a] - old[a]) * shifts[k];
  }
  if (t >= LANES) return;
  int count = 0;
  for (int q = 0; q < PER; ++q) {
    const int a = t + q * LANES;
    const double by = a < size ? b[a] - old[a] : 0.0;
    int before;
    const int all = counted(by != 0, before), place = p * SET + count + before;
    if (by != 0) { moves[place] = by; moved_rows[place] = row[a]; }
    count += all;
  }
  if (t) return;
  counts[p] = count;
  steps[p] += made;
  sizes[p] = size;
  if (!made) finished[p] = 1;  // float32 sees nothing to gain; the violation tells how far
}
"""


def solve_text(
    threads: int, lanes: int = 32, *, size: int, sums: int, tube: bool, shifted: bool
) -> str:
    """Return the text of `solve`.

    Parameters
    ----------
    threads : int
        Of a block: a multiple of the lanes of a warp.
    lanes : int
        Threads of a warp; 1 where a thread alone runs the text.
    size : int
        Variables of a set at most.
    sums : int
        Sums of variables that a programme keeps, one or two.
    tube : bool
        Whether variables have an epsilon.
    shifted : bool
        Whether something is added to the diagonal of K.
    """
    named = {"THREADS": threads, "LANES": lanes, "SET": size, "SUMS": sums}
    named |= {"TUBE": int(tube), "SHIFTED": int(shifted)}
    return defined(named) + COMMON + PLACED_KEYS + LARGEST_KEYS + _SOLVE
