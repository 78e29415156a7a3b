"""What the kernels are made of, in CUDA: tensor cores, copies, exponentials, and 40 bits."""

from __future__ import annotations

# What only a card knows: tests put their own words in its place.
CARD = r"""
__device__ __forceinline__ void multiply8(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+d"(c[2 * h]), "+d"(c[2 * h + 1]) : "d"(a[2 * k + h]), "d"(b[k]));
#endif
}

__device__ __forceinline__ void multiply4(double *c, const double *a, double b) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[2 * h]), "+d"(c[2 * h + 1]) : "d"(a[h]), "d"(b));
}

__device__ __forceinline__ void copy16(double *to, const double *from) {
  unsigned where = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(where), "l"(from));
}

__device__ __forceinline__ void copied() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#define SHARED extern __shared__ double held[];
"""

NUMBERS = r"""
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < count; ++i)

typedef long long wide_int;

// 16 bits behind those of a float: the distance of bit patterns, which are in the order of numbers
__device__ __forceinline__ short rest(double entry, float high) {
  if (!(fabsf(high) >= 1.1754944e-38f) || isinf(high)) return 0;
  wide_int more = __double_as_longlong(entry) - __double_as_longlong((double)high);
  return (short)min((more + 4096) >> 13, (wide_int)32767);
}

// the number of which this is the rest
__device__ __forceinline__ double joined(float high, short low) {
  return __longlong_as_double(__double_as_longlong((double)high) + ((wide_int)low << 13));
}
"""

# 2^(i/64) 2^k (1 + r + ...): a table in shared memory takes five terms of the series away.
EXPONENTIAL = r"""
__shared__ double table[64];

__device__ __forceinline__ void fill_table() {
  if (threadIdx.x < 32)
    for (int i = threadIdx.x; i < 64; i += 32) table[i] = exp2(i / 64.0);
}

// exp without a branch, so that many are under way at once; nothing below 2^-1022
__device__ __forceinline__ double exponential(double x) {
  if (fabs(x) > 746.0) x = copysign(746.0, x);
  double whole = fma(x, 92.332482616893657, 6755399441055744.0);
  int steps = __double2loint(whole);
  double part = table[steps & 63];
  whole -= 6755399441055744.0;
  double r = fma(whole, -0.6931471803691238 / 64, x);
  r = fma(whole, -1.9082149292705877e-10 / 64, r);
  double p = fma(r, 1.0 / 120, 1.0 / 24);
  p = fma(p, r, 1.0 / 6);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0) * r;
  int power = max(-1023, min(1024, steps >> 6));
  return __hiloint2double((1023 + power) << 20, 0) * fma(part, p, part);
}
"""
