// exp, log and tanh on vectors: our own polynomials, near-minimax on the reduced range.
#pragma once

#include "runtime/vector.hpp"

namespace mercer {
namespace {

// Constants per type. `shifter` adds an integer into the low mantissa bits: x + shifter rounds x
// to the nearest integer and leaves that integer there, which saves the conversion instructions
// that old instruction sets lack for doubles.
template <class T>
struct Math;

template <>
struct Math<float> {
  static constexpr int mantissa = 23;
  static constexpr int32_t bias = 127;
  static constexpr float shifter = 12582912.0f;  // 1.5 * 2^23
  static constexpr float log2e = 1.44269504f;
  static constexpr float ln2_high = 0.693145752f;  // low bits zero: n * ln2_high is exact
  static constexpr float ln2_low = 1.42860682e-06f;
  // Here 2^(n-1) has the exponent field zero, so that the result is flushed to zero ...
  static constexpr float exp_low = -87.3f;
  static constexpr float exp_high = 89.0f;  // ... and here it overflows by itself
  static constexpr float tanh_end = 10.0f;  // 1 to working precision from here on
  static constexpr float smallest = 1.17549435e-38f;
  static constexpr float root_half = 0.707106781f;
  // (exp(r) - 1) / r on |r| <= ln 2 / 2
  static constexpr int exp_terms = 6;
  static constexpr float exp_series[exp_terms] = {
      1.00000001080395231f,   0.500000001349817786f,   0.166665049369635965f,
      0.0416664646020265416f, 0.00836918438229196143f, 0.00139336858626171736f};
  // (atanh(s) / s - 1) / s^2 in s^2, for mantissas between sqrt(1/2) and sqrt(2)
  static constexpr int log_terms = 3;
  static constexpr float log_series[log_terms] = {0.333333425477145344f, 0.199943788583024235f,
                                                  0.147904929649872113f};
};

template <>
struct Math<double> {
  static constexpr int mantissa = 52;
  static constexpr int64_t bias = 1023;
  static constexpr double shifter = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 0.69314718036912382;
  static constexpr double ln2_low = 1.9082149292705877e-10;
  static constexpr double exp_low = -708.4;
  static constexpr double exp_high = 710.0;
  static constexpr double tanh_end = 20.0;
  static constexpr double smallest = 2.2250738585072014e-308;
  static constexpr double root_half = 0.70710678118654752;
  static constexpr int exp_terms = 11;
  static constexpr double exp_series[exp_terms] = {
      1.0,
      0.500000000000000565,
      0.16666666666666671,
      0.0416666666665727677,
      0.00833333333332611205,
      0.00138888889326196351,
      0.000198412698749012592,
      0.0000248015041808371383,
      2.75572552979696444e-6,
      2.76264263765803328e-7,
      2.51052595384484934e-8};
  static constexpr int log_terms = 8;
  static constexpr double log_series[log_terms] = {
      0.333333333333333332, 0.200000000000004416, 0.142857142853998925, 0.111111111962905225,
      0.0909089777376056812, 0.076931223688108333, 0.0663431918463341194, 0.0654401742546377692};
};

template <class T, int N>
MERCER_INLINE Vec<T> horner(const T (&c)[N], Vec<T> x) {
  Vec<T> sum = splat<T>(c[N - 1]);
#pragma GCC unroll 16
  for (int k = N - 2; k >= 0; --k) sum = sum * x + c[k];
  return sum;
}

template <class T>
struct Reduced {
  Vec<T> r;
  Vec<T> slope;      // (exp(r) - 1) / r
  Ints<T> exponent;  // n, in the low bits
};

// x = n ln 2 + r
template <class T>
MERCER_INLINE Reduced<T> reduce(Vec<T> x) {
  typedef Math<T> M;
  const Vec<T> shifted = x * M::log2e + M::shifter;
  const Vec<T> n = shifted - M::shifter;
  const Vec<T> r = (x - n * M::ln2_high) - n * M::ln2_low;
  return {r, horner<T>(M::exp_series, r), bits<T>(shifted)};
}

// 2^(n + more) from n in the low bits; the sum must be a normal exponent.
template <class T>
MERCER_INLINE Vec<T> power_of_two(Ints<T> n, Int<T> more) {
  return from_bits<T>((n + (Math<T>::bias + more)) << Math<T>::mantissa);
}

// Infinite beyond the range, zero below it, NaN for NaN; exp(0) is exactly 1.
template <class T>
MERCER_INLINE Vec<T> exponential(Vec<T> x) {
  typedef Math<T> M;
  const Vec<T> low = splat<T>(M::exp_low), high = splat<T>(M::exp_high);
  const Reduced<T> e = reduce<T>(smaller<T>(high, larger<T>(low, x)));
  // 2^(n-1) is representable for the largest n, where 2^n is not.
  const Vec<T> twice = (e.r + e.r) * e.slope + T(2);
  return twice * power_of_two<T>(e.exponent, -1);
}

// tanh x = e / (e + 2) with e = exp(2x) - 1, which keeps small x accurate.
template <class T>
MERCER_INLINE Vec<T> hyperbolic_tangent(Vec<T> x) {
  typedef Math<T> M;
  const Vec<T> size = pick<T>(x < T(0), -x, x);
  const Vec<T> inside = smaller<T>(splat<T>(M::tanh_end), size);
  const Reduced<T> e = reduce<T>(inside + inside);
  const Vec<T> scale = power_of_two<T>(e.exponent, 0);
  const Vec<T> grown = scale * (e.r * e.slope) + (scale - T(1));
  const Vec<T> y = grown / (grown + T(2));
  return pick<T>(x < T(0), -y, y);
}

// NaN below zero, minus infinity at zero.
template <class T>
MERCER_INLINE Vec<T> logarithm(Vec<T> x) {
  typedef Math<T> M;
  const Vec<T> infinity = splat<T>(T(__builtin_inff()));
  // Denormals are brought into the normal range first.
  constexpr T lift = T(Int<T>(1) << (M::mantissa + 1));
  const Ints<T> tiny = x < M::smallest;
  const Vec<T> normal = pick<T>(tiny, x * lift, x);
  // Subtracting sqrt(1/2)'s bits before splitting puts the mantissa into [sqrt(1/2), sqrt(2)).
  const Ints<T> offset = bits<T>(splat<T>(M::root_half));
  const Ints<T> above = bits<T>(normal) - offset;
  const Ints<T> n = above >> M::mantissa;
  const Vec<T> mantissa = from_bits<T>(bits<T>(normal) - (n << M::mantissa));
  const Vec<T> s = (mantissa - T(1)) / (mantissa + T(1));
  const Vec<T> z = s * s;
  const Vec<T> series = (s + s) + (s + s) * z * horner<T>(M::log_series, z);
  Vec<T> whole = from_bits<T>(n + bits<T>(splat<T>(M::shifter))) - M::shifter;
  whole = pick<T>(tiny, whole - T(M::mantissa + 1), whole);
  Vec<T> y = whole * M::ln2_high + (series + whole * M::ln2_low);
  y = pick<T>(x < infinity, y, x);  // infinity and NaN pass through
  y = pick<T>(x == T(0), -infinity, y);
  return pick<T>(x < T(0), splat<T>(T(__builtin_nanf(""))), y);
}

}  // namespace
}  // namespace mercer
