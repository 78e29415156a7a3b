"""The CUDA texts of a round: `follow` moves F of all variables, `solve` solves a small set of them.

All programmes share one float32 K in the memory of the card; a round serves all that are not at
their end. `follow` has one block for some neighbouring variables: it subtracts from their F the
rows of K that the last set moved, and finds the one that most wants to rise and the one that most
wants to fall. `solve` has one block for a programme: of what the blocks found, it takes the worst,
gathers K between them into shared memory, and there one warp makes second-order pair steps, which
take a third of a microsecond each since nobody waits for anybody.
F and coefficients are float64, so that bounds and sums hold and nothing drifts. NVRTC compiles the
texts when they are first used: no compiler is needed on the machine.
"""

from __future__ import annotations

FOLLOW, SOLVE = "follow", "solve"
GROUPS = 512  # blocks of `follow` for a programme at most

_SHARED = r"""
#define NONE 0x7fffffff
#define INF __longlong_as_double(0x7ff0000000000000LL)
#define RISES 1
#define FALLS 2
#define NEGATIVE 4
#define POSITIVE 8
#define ALL 0xffffffffu

__device__ __forceinline__ int flags(double b, double lower, double upper) {
  return (b < upper ? RISES : 0) | (b > lower ? FALLS : 0) | (b < 0 ? NEGATIVE : 0) |
         (b > 0 ? POSITIVE : 0);
}

// a price of moving: what |b| costs more, or less, on the way up and on the way down
#define UP(e, c) ((c) & NEGATIVE ? (e) : -(e))
#define LOW(e, c) ((c) & POSITIVE ? -(e) : (e))

template <class T> __device__ __forceinline__ void better(T &v, int &i, T w, int j) {
  if (w > v || (w == v && j < i)) { v = w; i = j; }
}

template <class T> __device__ __forceinline__ void in_warp(T &v, int &i) {
  for (int o = LANES / 2; o; o >>= 1)
    better(v, i, __shfl_xor_sync(ALL, v, o), __shfl_xor_sync(ALL, i, o));
}
"""

_FOLLOW = r"""
extern "C" __global__ void __launch_bounds__(THREADS) follow(
    const float *K, int ld, const int *active, const int *begin, const int *rows,
    const double *lowers, const double *uppers, const double *epsilons, const double *b,
    double *gradients, const int *finished, const int *counts, const int *moved_rows,
    const double *moves, double *tops, int *risers, double *bottoms, int *fallers, int width) {
  __shared__ double move[SET], sv[2][32];
  __shared__ long long from[SET];
  __shared__ int si[2][32];
  const int p = active[blockIdx.y], first = begin[p], m = begin[p + 1] - first;
  const int start = blockIdx.x * width;
  if (finished[p] || start >= m) return;
  const int count = counts[p], end = min(m, start + width);
  for (int s = threadIdx.x; s < count; s += THREADS) {
    move[s] = moves[p * SET + s];
    from[s] = (long long)moved_rows[p * SET + s] * ld;
  }
  __syncthreads();
  double top = -INF, bottom = -INF;
  int riser = NONE, faller = NONE;
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
    if (c & RISES) better(top, riser, f + UP(e, c), k);
    if (c & FALLS) better(bottom, faller, -(f + LOW(e, c)), k);
  }
  in_warp(top, riser);
  in_warp(bottom, faller);
  const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
  if (!lane) {
    sv[0][warp] = top; si[0][warp] = riser;
    sv[1][warp] = bottom; si[1][warp] = faller;
  }
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < THREADS / LANES; ++w) {
    better(top, riser, sv[0][w], si[0][w]);
    better(bottom, faller, sv[1][w], si[1][w]);
  }
  const int place = p * GROUPS + blockIdx.x;
  tops[place] = top; risers[place] = riser;
  bottoms[place] = -bottom; fallers[place] = faller;
}
"""

_SOLVE = r"""
#define KEPT (SET / 2)
#define PER ((SET + LANES - 1) / LANES)
#define WARPS (THREADS / LANES)

// the largest of a warp, and one lane that has it: integers in the order of the numbers
__device__ __forceinline__ float largest(float v, int &lane) {
#if LANES == 1
  lane = 0;
  return v;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned bits = __float_as_uint(v);
  const unsigned key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  const unsigned most = __reduce_max_sync(ALL, key);
  lane = __ffs(__ballot_sync(ALL, key == most)) - 1;
  return __uint_as_float(most & 0x80000000u ? most & 0x7fffffffu : ~most);
#else
  lane = threadIdx.x;
  in_warp(v, lane);
  return v;
#endif
}

// how many of the values that may be taken come before one: larger ones, and earlier equal ones
__device__ __forceinline__ int rank(const double *value, int q, int groups) {
  int before = 0;
  const double v = value[q];
  for (int r = 0; r < groups; ++r) before += value[r] > v || (value[r] == v && r < q);
  return before;
}

// the curvature along a pair, from the sum of its diagonal entries and the entry between them
__device__ __forceinline__ float bent(float both, float entry) {
  return fmaxf(fmaxf(both - 2.f * entry, 1e-12f * both), 1e-37f);
}

extern "C" __global__ void __launch_bounds__(THREADS) solve(
    const float *K, int ld, const int *active, const int *begin, const int *rows,
    const double *lowers, const double *uppers, const double *epsilons, const double *shifts,
    double *coefficients, double *gradients, int *finished, int *counts, int *moved_rows,
    double *moves, const double *tops, const int *risers, const double *bottoms,
    const int *fallers, int *members, int *sizes, int *steps, double *violations,
    int width, double tol, double share, int inner, int limit) {
  extern __shared__ float between[];
  __shared__ double rise[GROUPS], fall[GROUPS], b[SET], old[SET], lower[SET], upper[SET];
  __shared__ float epsilon[SET], diagonal[SET], F[SET];
  __shared__ int member[SET], last[SET], row[SET], lifted[GROUPS], chosen[4], made;
  __shared__ double edges[2];
  const int p = active[blockIdx.x], first = begin[p], m = begin[p + 1] - first;
  if (finished[p]) return;
  const int groups = (m + width - 1) / width, t = threadIdx.x;
  for (int q = t; q < groups; q += THREADS) {
    rise[q] = tops[p * GROUPS + q];
    fall[q] = -bottoms[p * GROUPS + q];
  }
  for (int r = t; r < 4; r += THREADS) chosen[r] = 0;
  __syncthreads();
  // those of the last set that are free stay, the newest first, if they are at most half of it
  const int before_now = sizes[p];
  for (int a = t; a < before_now; a += THREADS) {
    const int k = members[p * SET + a];
    const double now = coefficients[first + k];
    const bool free = now < uppers[first + k] && now > lowers[first + k];
    last[a] = free ? k : NONE;
    if (free) atomicAdd(chosen + 2, 1);
  }
  if (t < LANES) {
    double top = -INF, bottom = -INF;
    int unused = NONE;
    for (int q = t; q < groups; q += LANES) {
      top = fmax(top, rise[q]);
      bottom = fmax(bottom, fall[q]);
    }
    in_warp(top, unused); unused = NONE;
    in_warp(bottom, unused);
    if (!t) { edges[0] = top; edges[1] = -bottom; }
  }
  __syncthreads();
  const double top = edges[0], bottom = edges[1], gap = top - bottom;
  if (!t) violations[p] = gap;
  if (!(gap > tol) || steps[p] >= limit) {
    if (!t) { counts[p] = 0; finished[p] = !(gap > tol); }
    return;
  }

  // of the others, half are those that most want to rise, half those that most want to fall
  const int quota = (SET - min(chosen[2], KEPT)) / 2;
  for (int q = t; q < groups; q += THREADS) {
    const int before = rise[q] > bottom ? rank(rise, q, groups) : SET;
    lifted[q] = before < quota ? risers[p * GROUPS + q] : NONE;
    if (before < quota) { member[before] = lifted[q]; atomicAdd(chosen, 1); }
  }
  __syncthreads();
  for (int q = t; q < groups; q += THREADS)
    if (fallers[p * GROUPS + q] == lifted[q]) fall[q] = -INF;
  __syncthreads();
  const int rising = chosen[0];
  for (int q = t; q < groups; q += THREADS) {
    const int before = -fall[q] < top ? rank(fall, q, groups) : SET;
    if (before < quota) {
      member[rising + before] = fallers[p * GROUPS + q];
      atomicAdd(chosen + 1, 1);
    }
  }
  __syncthreads();
  const int fresh = rising + chosen[1];
  for (int a = t; a < before_now; a += THREADS)
    for (int r = 0; r < fresh; ++r)
      if (member[r] == last[a]) last[a] = NONE;
  __syncthreads();
  for (int a = t; a < before_now; a += THREADS) {
    int place = fresh;
    for (int r = 0; r < a; ++r) place += last[r] != NONE;
    if (last[a] != NONE && place < SET) { member[place] = last[a]; atomicAdd(chosen + 3, 1); }
  }
  __syncthreads();
  const int size = fresh + chosen[3];
  const double level = 0.5 * (top + bottom);  // taken off F: float32 then resolves the rest
  for (int a = t; a < size; a += THREADS) {
    const int k = first + member[a];
    row[a] = rows[k];
    b[a] = old[a] = coefficients[k];
    lower[a] = lowers[k]; upper[a] = uppers[k];
    epsilon[a] = TUBE ? (float)epsilons[k] : 0.f;
    F[a] = (float)(gradients[k] - level);
  }
  __syncthreads();
  // K between them, from half of its entries; rows of an odd length meet no bank twice
  const int stride = size | 1;
  for (int a = t / LANES; a < size; a += WARPS) {
    const float *from = K + (long long)row[a] * ld;
    float q[PER];
#pragma unroll
    for (int r = 0; r < PER; ++r) {
      const int c = t % LANES + r * LANES;
      q[r] = c <= a ? __ldg(from + row[c]) : 0.f;
    }
#pragma unroll
    for (int r = 0; r < PER; ++r) {
      const int c = t % LANES + r * LANES;
      if (c <= a) between[a * stride + c] = between[c * stride + a] = q[r];
    }
  }
  __syncthreads();
  for (int a = t; a < size; a += THREADS) {
    if (SHIFTED) between[a * stride + a] += (float)shifts[first + member[a]];
    diagonal[a] = between[a * stride + a];
  }
  __syncthreads();

  if (t < LANES) {
    float f[PER], e[PER], own[PER];
    int c[PER];
#pragma unroll
    for (int q = 0; q < PER; ++q) {
      const int a = t + q * LANES;
      const bool in = a < size;
      f[q] = in ? F[a] : 0.f; e[q] = in ? epsilon[a] : 0.f; own[q] = in ? diagonal[a] : 1.f;
      c[q] = in ? flags(b[a], lower[a], upper[a]) : 0;
    }
    const float least = (float)-INF, aim = (float)fmax(0.5 * tol, share * gap);
    const int most = min(inner, limit - steps[p]);
    int s = 0;
    for (; s < most; ++s) {
      float v = least, u = least;
      int i = NONE, j = NONE, lane;
#pragma unroll
      for (int q = 0; q < PER; ++q) {
        if (c[q] & RISES) better(v, i, f[q] + UP(e[q], c[q]), t + q * LANES);
        if (c[q] & FALLS) u = fmaxf(u, -(f[q] + LOW(e[q], c[q])));
      }
      u = largest(u, lane);
      v = largest(v, lane);
      if (!(v + u > aim)) break;
      i = __shfl_sync(ALL, i, lane);
      const float *Ki = between + i * stride;
      const float di = diagonal[i];
      float gain = 0.f, down = 0.f, bend = 1.f;
#pragma unroll
      for (int q = 0; q < PER; ++q) {
        const float d = v - (f[q] + LOW(e[q], c[q]));
        if ((c[q] & FALLS) && d > 0.f) {
          const float curvature = bent(di + own[q], Ki[t + q * LANES]);
          const float by = __fdividef(d * d, curvature);
          if (by > gain) { gain = by; j = t + q * LANES; down = d; bend = curvature; }
        }
      }
      if (!(largest(gain, lane) > 0.f)) break;
      j = __shfl_sync(ALL, j, lane);
      const float *Kj = between + j * stride;
      double step = __shfl_sync(ALL, down / bend, lane);
      const double bi = b[i], bj = b[j];
      const double highest = bi < 0 && epsilon[i] > 0 ? 0.0 : upper[i];
      const double lowest = bj > 0 && epsilon[j] > 0 ? 0.0 : lower[j];
      step = fmin(step, fmin(highest - bi, bj - lowest));
      const double ni = step == highest - bi ? highest : bi + step;
      const double nj = step == bj - lowest ? lowest : bj - step;
      __syncwarp();
      if (!t) { b[i] = ni; b[j] = nj; }
      const float by = (float)step;
#pragma unroll
      for (int q = 0; q < PER; ++q) {
        const int a = t + q * LANES;
        if (a < size) f[q] -= by * (Ki[a] - Kj[a]);
        if (a == i) c[q] = flags(ni, lower[i], upper[i]);
        if (a == j) c[q] = flags(nj, lower[j], upper[j]);
      }
      __syncwarp();
    }
    if (!t) made = s;
  }
  __syncthreads();

  // what moved, in the order of the set; F of the set itself takes what is on the diagonal
  for (int a = t; a < size; a += THREADS) {
    const double by = b[a] - old[a];
    const int k = first + member[a];
    coefficients[k] = b[a];
    members[p * SET + a] = member[a];
    if (SHIFTED) gradients[k] -= by * shifts[k];
    int place = 0;
    for (int r = 0; r < a; ++r) place += b[r] != old[r];
    if (by != 0) { moves[p * SET + place] = by; moved_rows[p * SET + place] = row[a]; }
    if (a == size - 1) {
      counts[p] = place + (by != 0);
      steps[p] += made;
      sizes[p] = size;
      if (!made) { finished[p] = 1; violations[p] = INF - INF; }
    }
  }
}
"""


def follow_text(threads: int, lanes: int = 32, *, size: int, tube: bool, loads: int = 16) -> str:
    """Return the text of `follow`.

    Parameters
    ----------
    threads : int
        Of a block: a multiple of the lanes of a warp.
    lanes : int
        Threads of a warp; 1 where a thread alone runs the text.
    size : int
        Variables of a set at most.
    tube : bool
        Whether variables have an epsilon.
    loads : int
        Numbers that a thread asks for before it uses the first.
    """
    named = {"THREADS": threads, "LANES": lanes, "SET": size, "TUBE": int(tube), "LOADS": loads}
    return _defined(named) + _SHARED + _FOLLOW


def solve_text(threads: int, lanes: int = 32, *, size: int, tube: bool, shifted: bool) -> str:
    """Return the text of `solve`.

    Parameters
    ----------
    threads : int
        Of a block: a multiple of the lanes of a warp.
    lanes : int
        Threads of a warp; 1 where a thread alone runs the text.
    size : int
        Variables of a set at most.
    tube : bool
        Whether variables have an epsilon.
    shifted : bool
        Whether something is added to the diagonal of K.
    """
    named = {"THREADS": threads, "LANES": lanes, "SET": size}
    return _defined(named | {"TUBE": int(tube), "SHIFTED": int(shifted)}) + _SHARED + _SOLVE


def _defined(named: dict[str, int]) -> str:
    return "".join(f"#define {name} {n}\n" for name, n in (named | {"GROUPS": GROUPS}).items())
