"""What both kernels of a round are made of, in CUDA: flags of variables, and the best of a warp."""

from __future__ import annotations

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
