"""The CUDA text of pair steps on many box programmes: one thread block descends on one of them.

All programmes share one float32 K in the memory of the card. A block keeps F and a few flags of
each variable (whether it can rise and fall, and its sign) in shared memory; a step is one sweep
that finds the partner of largest second-order gain, and one that moves F and finds the next
violator.
Coefficients are float64, so that bounds and sums hold. Blocks take the next programme from a
counter. NVRTC compiles the text when it is first used: no compiler is needed on the machine.
"""

from __future__ import annotations

NAME = "descend"
BYTES = 5  # of shared memory for a variable: F and the flags
FIXED = 1 << 10  # bytes of shared memory beside

_TEXT = r"""
#define NONE 0x7fffffff
#define INF __int_as_float(0x7f800000)
#define RISES 1
#define FALLS 2
#define NEGATIVE 4
#define POSITIVE 8

__device__ __forceinline__ void better(float &v, int &i, float w, int j) {
  if (w > v || (w == v && j < i)) { v = w; i = j; }
}

__device__ __forceinline__ unsigned char flags(double b, double lower, double upper) {
  return (b < upper ? RISES : 0) | (b > lower ? FALLS : 0) | (b < 0 ? NEGATIVE : 0) |
         (b > 0 ? POSITIVE : 0);
}

// the largest v with its number, and the largest u, over all threads; every thread gets them
__device__ void across(float &v, int &i, float &u, float *sv, int *si, float *su) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int o = 16; o; o >>= 1) {
    better(v, i, __shfl_xor_sync(~0u, v, o), __shfl_xor_sync(~0u, i, o));
    u = fmaxf(u, __shfl_xor_sync(~0u, u, o));
  }
  if (!lane) { sv[warp] = v; si[warp] = i; su[warp] = u; }
  __syncthreads();
  const bool one = lane < (THREADS + 31) / 32;
  v = one ? sv[lane] : -INF; i = one ? si[lane] : NONE; u = one ? su[lane] : -INF;
  for (int o = 16; o; o >>= 1) {
    better(v, i, __shfl_xor_sync(~0u, v, o), __shfl_xor_sync(~0u, i, o));
    u = fmaxf(u, __shfl_xor_sync(~0u, u, o));
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) descend(
    const float *K, int ld, int count, int *next, const int *begin, const int *rows,
    const float *diagonals, const double *lowers, const double *uppers, const float *epsilons,
    const float *shifts, double *coefficients, float *gradients, int *finished, int *steps,
    float *violations, double tol, int limit) {
  extern __shared__ float memory[];
  __shared__ float sv[2][32], su[2][32], moved;
  __shared__ int si[2][32], mine;
  for (;;) {
    __syncthreads();
    if (!threadIdx.x) mine = atomicAdd(next, 1);
    __syncthreads();
    const int p = mine;
    if (p >= count) return;
    if (finished[p]) continue;
    const int first = begin[p], m = begin[p + 1] - first;
    float *F = memory;
    unsigned char *flag = (unsigned char *)(memory + m);
    const int *row = rows + first;
    const float *diag = diagonals + first;
    const double *lower = lowers + first, *upper = uppers + first;
    double *b = coefficients + first;
#if TUBE
    const float *epsilon = epsilons + first;
#define EPSILON(k) epsilon[k]
#else
#define EPSILON(k) 0.f
#endif
#define UP(k, c) ((c) & NEGATIVE ? EPSILON(k) : -EPSILON(k))
#define LOW(k, c) ((c) & POSITIVE ? -EPSILON(k) : EPSILON(k))
    float v = -INF, u = -INF;
    int i = NONE;
    for (int k = threadIdx.x; k < m; k += THREADS) {
      const float f = gradients[first + k];
      const unsigned char c = flags(b[k], lower[k], upper[k]);
      F[k] = f; flag[k] = c;
      if (c & RISES) better(v, i, f + UP(k, c), k);
      if (c & FALLS) u = fmaxf(u, -f - LOW(k, c));
    }
    across(v, i, u, sv[0], si[0], su[0]);
    int flip = 1, s = 0;
    bool lost = false;
    float gap = v + u;
    while (gap > tol && s < limit) {
      const float top = v, own = diag[i];
      const float *Ki = K + (long long)row[i] * ld;
      float gain = 0.f, unused = -INF;
      int j = NONE;
      for (int k0 = threadIdx.x; k0 < m; k0 += THREADS * LOADS) {
        float q[LOADS];
#pragma unroll
        for (int a = 0; a < LOADS; ++a) {
          const int k = k0 + a * THREADS;
          q[a] = k < m ? __ldg(Ki + row[k]) : 0.f;
        }
#pragma unroll
        for (int a = 0; a < LOADS; ++a) {
          const int k = k0 + a * THREADS;
          if (k >= m) break;
          const unsigned char c = flag[k];
          const float d = top - F[k] - LOW(k, c);
          if ((c & FALLS) && d > 0.f) {
            const float level = own + diag[k];
            const float curvature = fmaxf(fmaxf(level - 2.f * q[a], 1e-12f * level), 1e-37f);
            better(gain, j, __fdividef(d * d, curvature), k);
          }
        }
      }
      if (!(gain > 0.f)) j = NONE;
      across(gain, j, unused, sv[flip], si[flip], su[flip]);
      flip ^= 1;
      if (j == NONE) { lost = true; break; }
      const float *Kj = K + (long long)row[j] * ld;
      if (!threadIdx.x) {
        const double level = (double)own + diag[j];
        const double curvature = fmax(fmax(level - 2.0 * Ki[row[j]], 1e-12 * level), 1e-300);
        double step = ((double)top - F[j] - LOW(j, flag[j])) / curvature;
        const double highest = b[i] < 0 && EPSILON(i) > 0 ? 0.0 : upper[i];
        const double lowest = b[j] > 0 && EPSILON(j) > 0 ? 0.0 : lower[j];
        const double up = highest - b[i], down = b[j] - lowest;
        step = fmin(step, fmin(up, down));
        b[i] = step == up ? highest : b[i] + step;
        b[j] = step == down ? lowest : b[j] - step;
        flag[i] = flags(b[i], lower[i], upper[i]);
        flag[j] = flags(b[j], lower[j], upper[j]);
#if SHIFTED
        F[i] -= (float)(step * shifts[first + i]);
        F[j] += (float)(step * shifts[first + j]);
#endif
        moved = (float)step;
      }
      __syncthreads();
      const float step = moved;
      v = -INF; u = -INF; i = NONE;
      for (int k0 = threadIdx.x; k0 < m; k0 += THREADS * LOADS) {
        float q[LOADS];
#pragma unroll
        for (int a = 0; a < LOADS; ++a) {
          const int k = k0 + a * THREADS;
          q[a] = k < m ? __ldg(Ki + row[k]) - __ldg(Kj + row[k]) : 0.f;
        }
#pragma unroll
        for (int a = 0; a < LOADS; ++a) {
          const int k = k0 + a * THREADS;
          if (k >= m) break;
          const float f = F[k] - step * q[a];
          const unsigned char c = flag[k];
          F[k] = f;
          if (c & RISES) better(v, i, f + UP(k, c), k);
          if (c & FALLS) u = fmaxf(u, -f - LOW(k, c));
        }
      }
      across(v, i, u, sv[flip], si[flip], su[flip]);
      flip ^= 1;
      gap = v + u;
      ++s;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < m; k += THREADS) gradients[first + k] = F[k];
    if (!threadIdx.x) {
      steps[p] += s;
      violations[p] = lost ? __int_as_float(0x7fc00000) : gap;
      finished[p] = lost || !(gap > tol);
    }
  }
}
"""


def descent_text(threads: int, *, tube: bool, shifted: bool, loads: int = 8) -> str:
    """Return the text of the kernel.

    Parameters
    ----------
    threads : int
        Of a block: a multiple of 32.
    tube : bool
        Whether variables have an epsilon.
    shifted : bool
        Whether something is added to the diagonal of K.
    loads : int
        Numbers that a thread asks for before it uses the first.
    """
    named = {"THREADS": threads, "TUBE": int(tube), "SHIFTED": int(shifted), "LOADS": loads}
    return "".join(f"#define {name} {value}\n" for name, value in named.items()) + _TEXT
