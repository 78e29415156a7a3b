"""The CUDA text that takes the largest of some keys, by one warp.

A threshold is found bit by bit: 22 counts of how many are above one, since the last bits do not
matter. Ranks of 512 values among one another took a sixth of a round, this takes a fifth of that.
"""

from __future__ import annotations

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
