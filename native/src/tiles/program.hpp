// The operations of an expression, each a loop over a strip that stays in the nearest cache.
#pragma once

#include "tiles/functions.hpp"
#include "tiles/tiles.hpp"

namespace mercer {
namespace {

template <class T, class F>
MERCER_INLINE void unary(T* out, const T* a, int64_t size, F f) {
  for (int64_t i = 0; i < size; i += kLanes<T>) store(out + i, f(load(a + i)));
}

template <class T, class F>
MERCER_INLINE void binary(T* out, const T* a, const T* b, int64_t size, F f) {
  for (int64_t i = 0; i < size; i += kLanes<T>) store(out + i, f(load(a + i), load(b + i)));
}

template <class T, class F>
MERCER_INLINE void row_term(T* out, const Strip<T>& s, const RowTerm<T>& term, F f) {
  for (int i = 0; i < s.rows; ++i) {
    const Vec<T> u = splat<T>(term.rows[i]);
    for (int64_t j = 0; j < s.ld; j += kLanes<T>) {
      store(out + i * s.ld + j, f(u, load(term.columns + j)));
    }
  }
}

template <class T>
MERCER_INLINE Vec<T> ratio(Vec<T> above, Vec<T> below) {
  const Ints<T> both_zero = (above == T(0)) & (below == T(0));
  return pick<T>(both_zero, splat<T>(1), above / below);
}

template <class T>
MERCER_INLINE Vec<T> whole_power(Vec<T> base, int exponent) {
  Vec<T> result = splat<T>(1);
  for (int left = exponent < 0 ? -exponent : exponent; left > 0; left /= 2) {
    if (left % 2 == 1) result = result * base;
    base = base * base;
  }
  return exponent < 0 ? splat<T>(1) / result : result;
}

// Small powers are the common ones (polynomial kernels, reciprocals): no inner loop for them.
template <class T, class F>
MERCER_INLINE void raise(T* out, const T* a, int64_t size, int exponent, F affine) {
  switch (exponent) {
    case -1: return unary(out, a, size, [=](Vec<T> x) { return T(1) / affine(x); });
    case 2: return unary(out, a, size, [=](Vec<T> x) { x = affine(x); return x * x; });
    case 3: return unary(out, a, size, [=](Vec<T> x) { x = affine(x); return x * x * x; });
    default:
      return unary(out, a, size, [=](Vec<T> x) { return whole_power<T>(affine(x), exponent); });
  }
}

template <class T, class F>
void polynomial(T* out, const T* a, int64_t size, const double* c, int count, F affine) {
  unary(out, a, size, [=](Vec<T> x) {
    x = affine(x);
    Vec<T> sum = splat<T>(T(c[count - 1]));
    for (int k = count - 2; k >= 0; --k) sum = sum * x + T(c[k]);
    return sum;
  });
}

template <class T>
void copy_external(T* out, const Strip<T>& s, const External<T>& e) {
  for (int i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.ld; ++j) {
      out[i * s.ld + j] = j < s.columns ? e.values[i * e.ld + j] : 0;
    }
  }
}

template <class T>
void run_op(const Op& op, const Strip<T>& s) {
  const T c0 = T(op.c0), c1 = T(op.c1), c2 = T(op.c2);
  const int64_t size = s.rows * s.ld;
  T* out = s.registers[op.out];
  const T* a = s.registers[op.a];
  const T* b = s.registers[op.b];
  const auto affine = [=](Vec<T> x) { return c0 * x + c1; };
  switch (op.code) {
    case kFill: return unary(out, out, size, [=](Vec<T>) { return splat<T>(c0); });
    case kAffine: return unary(out, a, size, affine);
    case kSum:
      return binary(out, a, b, size, [=](Vec<T> x, Vec<T> y) { return c0 * x + (c1 * y + c2); });
    case kProduct: return binary(out, a, b, size, [=](Vec<T> x, Vec<T> y) { return c0 * x * y; });
    case kRatio: return binary(out, a, b, size, [](Vec<T> x, Vec<T> y) { return ratio<T>(x, y); });
    case kExp: return unary(out, a, size, [=](Vec<T> x) { return exponential<T>(affine(x)); });
    case kSqrt: return unary(out, a, size, [=](Vec<T> x) { return root<T>(affine(x)); });
    case kTanh:
      return unary(out, a, size, [=](Vec<T> x) { return hyperbolic_tangent<T>(affine(x)); });
    case kPower:
      return unary(out, a, size,
                   [=](Vec<T> x) { return exponential<T>(c2 * logarithm<T>(affine(x))); });
    case kWholePower: return raise(out, a, size, op.index, affine);
    case kPolynomial:
      return polynomial(out, a, size, s.coefficients + op.index, op.count, affine);
    case kRowProduct:
      return row_term(out, s, s.row_terms[op.index], [](Vec<T> u, Vec<T> w) { return u * w; });
    case kRowSum:
      return row_term(out, s, s.row_terms[op.index], [](Vec<T> u, Vec<T> w) { return u + w; });
    case kExternal: return copy_external(out, s, s.externals[op.index]);
  }
}

template <class T>
void run(const Op* ops, int count, const Strip<T>& strip) {
  for (int i = 0; i < count; ++i) run_op(ops[i], strip);
}

}  // namespace
}  // namespace mercer
