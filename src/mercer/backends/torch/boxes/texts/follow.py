"""The CUDA text of `follow`, which moves F of all variables after the steps of a set.

A block has some neighbouring variables of one programme. It subtracts from their F the rows of K
that the last set moved, and finds the one that most wants to rise and the one that most wants to
fall, of each sum. F is float64, so that nothing drifts. NVRTC compiles the text when it is first
used: no compiler is needed on the machine.
"""

from __future__ import annotations

from mercer.backends.torch.boxes.texts.parts import COMMON, defined

FOLLOW = "follow"

_FOLLOW = r"""
extern "C" __global__ void __launch_bounds__(THREADS) follow(
    const unsigned long long *matrices, const int *strides, const int *active, const int *begin,
    const int *rows, const double *lowers, const double *uppers, const double *epsilons,
    const int *sums, const double *b, double *gradients, const int *finished, const int *counts,
    const int *moved_rows, const double *moves, double *values, int *numbers, int width) {
  __shared__ double move[SET], sv[2 * SUMS][32];
  __shared__ long long from[SET];
  __shared__ int si[2 * SUMS][32];
  const int p = active[blockIdx.y], first = begin[p], m = begin[p + 1] - first;
  const int start = blockIdx.x * width;
  if (finished[p] || start >= m) return;
  const float *K = (const float *)matrices[p];  // each programme has a matrix of its own
  const long long ld = strides[p];
  const int count = counts[p], end = min(m, start + width);
  for (int s = threadIdx.x; s < count; s += THREADS) {
    move[s] = moves[p * SET + s];
    from[s] = moved_rows[p * SET + s] * ld;
  }
  __syncthreads();
  double best[2 * SUMS];  // what most wants to rise, and to fall, of each sum
  int who[2 * SUMS];
#pragma unroll
  for (int e = 0; e < 2 * SUMS; ++e) { best[e] = -INF; who[e] = NONE; }
  for (int k = start + threadIdx.x; k < end; k += THREADS) {
    const float *column = K + rows[first + k];
    double f = gradients[first + k];
    int s = 0;
    for (; s + LOADS <= count; s += LOADS) {
      float q[LOADS];
#pragma unroll
      for (int a = 0; a < LOADS; ++a) q[a] = __ldg(column + from[s + a]);
#pragma unroll
      for (int a = 0; a < LOADS; ++a) f -= move[s + a] * q[a];
    }
    for (; s < count; ++s) f -= move[s] * __ldg(column + from[s]);
    if (count) gradients[first + k] = f;
    const int c = flags(b[first + k], lowers[first + k], uppers[first + k]);
    const double e = TUBE ? epsilons[first + k] : 0.0;
    const int own = SUMS > 1 ? sums[first + k] : 0;
#pragma unroll
    for (int g = 0; g < SUMS; ++g) {
      if (g != own) continue;
      if (c & RISES) better(best[2 * g], who[2 * g], f + UP(e, c), k);
      if (c & FALLS) better(best[2 * g + 1], who[2 * g + 1], -(f + LOW(e, c)), k);
    }
  }
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
#pragma unroll
  for (int e = 0; e < 2 * SUMS; ++e) {
    in_warp(best[e], who[e]);
    if (!lane) { sv[e][warp] = best[e]; si[e][warp] = who[e]; }
  }
  __syncthreads();
  if (threadIdx.x >= 2 * SUMS && THREADS > 1) return;
  for (int e = threadIdx.x; e < 2 * SUMS; e += THREADS) {
    double v = sv[e][0];
    int i = si[e][0];
    for (int w = 1; w < THREADS / LANES; ++w) better(v, i, sv[e][w], si[e][w]);
    const int place = (2 * SUMS * p + e) * GROUPS + blockIdx.x;
    values[place] = v;
    numbers[place] = i;
  }
}
"""


def follow_text(
    threads: int, lanes: int = 32, *, size: int, sums: int, tube: bool, loads: int = 16
) -> str:
    """Return the text of `follow`.

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
    loads : int
        Numbers that a thread asks for before it uses the first.
    """
    named = {
        "THREADS": threads,
        "LANES": lanes,
        "SET": size,
        "SUMS": sums,
        "TUBE": int(tube),
        "LOADS": loads,
    }
    return defined(named) + COMMON + _FOLLOW
