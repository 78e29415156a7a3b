"""K'S (y - K v) of rows stored to 40 bits as one CUDA kernel: they are read once, sums in float64.

A block of threads holds v in shared memory and its part of the sums in registers. Each thread has
the same columns of all rows, and the next row is on its way while this one is multiplied.
"""

from __future__ import annotations

from mercer.backends.torch.exact.kernel_parts import NUMBERS

TRIP = "trip"
THREADS = 512
_EACH = 4  # columns that a thread loads at a time
_PIECE = _EACH * THREADS
MOST = 5 * _PIECE  # columns: with more, registers hold no row beside the sums


def pieces(m: int) -> int:
    """Return how many pieces of columns a block of threads has.

    Examples
    --------
    >>> pieces(10000), pieces(2048)
    (5, 1)
    """
    return max(1, -(-m // _PIECE))


def shared_bytes(m: int) -> int:
    """Return what v takes."""
    return 8 * _PIECE * pieces(m)


def trip_text(m: int, there: bool, threads: int = THREADS) -> str:
    """Write the kernel of so many columns; without the way there, that of K'S y and K's."""
    named = {"PIECES": max(1, -(-m // (_EACH * threads))), "THREADS": threads, "THERE": int(there)}
    return "".join(f"#define {name} {value}\n" for name, value in named.items()) + NUMBERS + _KERNEL


_KERNEL = r"""
#ifndef SHARED
#define SHARED extern __shared__ double held[];
#endif
#define PIECE (4 * THREADS)
#define INSIDE(p) (p * PIECE + 4 * thread < wide)

extern "C" __global__ void __launch_bounds__(THREADS, 1)
trip(int n, int height, int wide, const float *HIGH, const short *LOW, const double *V,
     const double *S, const double *Y, double *LEFT, double *OUT) {
  SHARED
  __shared__ double between[2][THREADS / 32];
  int thread = threadIdx.x;
  wide_int first = (wide_int)blockIdx.x * height, last = min(first + height, (wide_int)n);
  if (THERE) {
    for (int c = thread; c < PIECE * PIECES; c += THREADS) held[c] = c < wide ? V[c] : 0.0;
    __syncthreads();
  }
  // rows are walked by pointers: places of pieces are constants beside them
  const float *high_at = HIGH + first * wide + 4 * thread;
  const short *low_at = LOW + first * wide + 4 * thread;
  double sums[PIECES][4], mass[PIECES][4];
  float4 high[PIECES];
  short4 low[PIECES];
  EACH(p, PIECES) {
    EACH(e, 4) sums[p][e] = mass[p][e] = 0.0;
    high[p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    low[p] = make_short4(0, 0, 0, 0);
    if (INSIDE(p) && first < last) {
      high[p] = *(const float4 *)(high_at + p * PIECE);
      low[p] = *(const short4 *)(low_at + p * PIECE);
    }
  }
  for (int row = (int)first; row < last; ++row) {
    double k[PIECES][4], left = Y[row];
    high_at += wide;
    low_at += wide;
    EACH(p, PIECES) {
      k[p][0] = joined(high[p].x, low[p].x);
      k[p][1] = joined(high[p].y, low[p].y);
      k[p][2] = joined(high[p].z, low[p].z);
      k[p][3] = joined(high[p].w, low[p].w);
      if (INSIDE(p) && row + 1 < last) {
        high[p] = *(const float4 *)(high_at + p * PIECE);
        low[p] = *(const short4 *)(low_at + p * PIECE);
      }
    }
    if (THERE) {
      double value = 0.0;
      EACH(p, PIECES) {
        const double *v = held + p * PIECE + 4 * thread;
        EACH(e, 4) value = fma(k[p][e], v[e], value);
      }
      for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(0xffffffffu, value, o);
      if (thread % 32 == 0) between[row & 1][thread / 32] = value;
      __syncthreads();
      value = 0.0;
      EACH(w, THREADS / 32) value += between[row & 1][w];
      left -= value;
    }
    double s = S[row];
    left *= s;
    if (THERE && thread == 0) LEFT[row] = left;
    EACH(p, PIECES) EACH(e, 4) {
      sums[p][e] = fma(left, k[p][e], sums[p][e]);
      if (!THERE) mass[p][e] = fma(s, k[p][e], mass[p][e]);
    }
  }
  EACH(p, PIECES)
  if (INSIDE(p))
    EACH(e, 4) {
      double *out = OUT + (wide_int)blockIdx.x * wide * (THERE ? 1 : 2) + p * PIECE + 4 * thread;
      out[e] = sums[p][e];
      if (!THERE) out[wide + e] = mass[p][e];
    }
}
"""
