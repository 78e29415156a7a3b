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
#define ENDLESS 0x7ff00000
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < count; ++i)

typedef long long wide_int;

// exp without a branch, so that many are under way at once; nothing below 2^-1022
__device__ __forceinline__ double exponential(double x) {
  int high = __double2hiint(x) & 0x7fffffff;
  if ((unsigned)(high - 0x40875000) <= (unsigned)(ENDLESS - 0x40875000)) x = copysign(746.0, x);
  double whole = fma(x, 1.4426950408889634, 6755399441055744.0);
  int power = max(-1023, min(1024, __double2loint(whole)));
  whole -= 6755399441055744.0;
  double r = fma(whole, -0.6931471803691238, x), p = 2.510038549551032e-08;
  r = fma(whole, -1.9082149292705877e-10, r);
  p = fma(p, r, 2.7620088445409746e-07);
  p = fma(p, r, 2.7557268459997064e-06);
  p = fma(p, r, 2.4801521295954376e-05);
  p = fma(p, r, 0.00019841269863053618);
  p = fma(p, r, 0.0013888888917213717);
  p = fma(p, r, 0.008333333333330062);
  p = fma(p, r, 0.04166666666662413);
  p = fma(p, r, 0.16666666666666669);
  p = fma(p, r, 0.5000000000000001);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  return __hiloint2double((1023 + power) << 20, 0) * p;
}

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
