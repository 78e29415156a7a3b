"""CUDA source of the SVM kernels: working sets, pair steps, and updates of the gradient."""

from __future__ import annotations

# --- parts ---------------------------------------------------------------------------------------
#
# What both kernels of a round are made of, in CUDA: flags of variables, and the best of a warp.

GROUPS = 512  # blocks of `follow` for a programme at most

COMMON = r"""
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


def defined(named: dict[str, int]) -> str:
    """Return the lines that give constants of a text their values."""
    return "".join(f"#define {name} {n}\n" for name, n in (named | {"GROUPS": GROUPS}).items())


# --- placed keys ---------------------------------------------------------------------------------
#
# The CUDA text of keys: whole numbers in the order of numbers, that may say whose they are.
#
# A warp finds the largest of whole numbers by one instruction, where floats take five exchanges.
# With the place of a variable in the last bits nobody is asked for it: a pair step takes 0.38
# microseconds instead of 0.55.

PLACED_KEYS = r"""
#define PLACES 255u  // the last bits of a key: whose it is
#define FINITE 0x00800000u  // keys of smaller numbers are those of minus infinity
#define LARGER(a, b) ((a) > (b) ? (a) : (b))

// whole numbers in the order of the numbers, and back
__device__ __forceinline__ unsigned ordered(float v) {
  const unsigned bits = __float_as_uint(v);
  return bits ^ ((unsigned)((int)bits >> 31) | 0x80000000u);
}
__device__ __forceinline__ float number(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
// sixteen bits of a number are enough to choose by: one reduction then finds it and its place
__device__ __forceinline__ unsigned placed(unsigned key, int place) {
  return (key & ~PLACES) | (unsigned)place;
}

// the largest of a warp
__device__ __forceinline__ unsigned largest(unsigned key) {
#if LANES == 1
  return key;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(ALL, key);
#else
  for (int o = LANES / 2; o; o >>= 1) {
    const unsigned other = __shfl_xor_sync(ALL, key, o);
    key = LARGER(key, other);
  }
  return key;
#endif
}
"""


# --- largest keys --------------------------------------------------------------------------------
#
# The CUDA text that takes the largest of some keys, by one warp.
#
# A threshold is found bit by bit: 22 counts of how many are above one, since the last bits do not
# matter. Ranks of 512 values among one another took a sixth of a round, this takes a fifth of
# that.

LARGEST_KEYS = r"""
#define KEYS (GROUPS / LANES)
#define LAST 10  // bits of a key that do not matter

// how many lanes say so, and how many of them come before this one
__device__ __forceinline__ int counted(bool mine, int &before) {
#if LANES == 1
  before = 0;
  return mine;
#else
  const unsigned all = __ballot_sync(ALL, mine);
  before = __popc(all & ((1u << threadIdx.x % LANES) - 1));
  return __popc(all);
#endif
}

// the sum of a warp
__device__ __forceinline__ int summed(int n) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_add_sync(ALL, n);
#else
  for (int o = LANES / 2; o; o >>= 1) n += __shfl_xor_sync(ALL, n, o);
  return n;
#endif
}

// takes the `quota` largest of the keys that a warp has, earlier ones of such that begin alike;
// zeros never
__device__ __forceinline__ int taken(const unsigned *key, const int *who, int quota, int *out) {
  const int lane = threadIdx.x % LANES;
  unsigned edge = 0;  // what the smallest that is taken begins with, found bit by bit
  for (int bit = 31; bit >= LAST; --bit) {
    const unsigned next = edge | 1u << bit;
    int above = 0;
#pragma unroll
    for (int r = 0; r < KEYS; ++r) above += key[r] >= next;
    if (summed(above) >= quota) edge = next;
  }
  const unsigned alike = edge ? edge | ((1u << LAST) - 1) : 0;
  int count = 0;
  for (int equal = 0; equal < 2; ++equal)
    for (int r = 0; r < KEYS; ++r) {
      int before;
      const bool mine = key[r] > alike ? !equal : equal && edge && key[r] >= edge;
      const int all = counted(mine, before), place = count + before;
      if (mine && place < quota) out[place] = who[lane + r * LANES];
      count = min(quota, count + all);
    }
  return count;
}
"""


# --- follow --------------------------------------------------------------------------------------
#
# The CUDA text of `follow`, which moves F of all variables after the steps of a set.
#
# A block has some neighbouring variables of one programme. It subtracts from their F the rows of
# K that the last set moved, and finds the one that most wants to rise and the one that most wants
# to fall, of each sum. F is float64, so that nothing drifts. NVRTC compiles the text when it is
# first used: no compiler is needed on the machine.

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


# --- solve ---------------------------------------------------------------------------------------
#
# The CUDA text of `solve`, which solves a small set of the variables of a programme.
#
# A block has one programme. Of what the blocks of `follow` found, it takes the worst, beside free
# variables of the last set; without these, sets take turns with one another's variables
# (covertype, 6000 rows, C = 1 and 10: 422 and 3429 rounds instead of 131 and 192). It gathers K
# between them into shared memory, and there one warp makes second-order pair steps, in which
# nobody waits for anybody. Coefficients are float64, so that bounds and sums hold.

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
