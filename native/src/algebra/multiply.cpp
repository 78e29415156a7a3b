// The register-blocked product, compiled for three register widths.
#include "algebra/multiply.hpp"

#include <algorithm>

#include "algebra/simd.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kRows = 6;  // rows of a register block: 6 x 4 accumulators of 32 registers

// One register block: `rows` x (vectors * lanes) of C over k in [begin, end).
template <class T, int lanes, int vectors, int rows, Into into>
MERCER_INLINE void block(Size begin, Size end, const T* left, Size row, Size step,
                         const T* right, Size right_step, T* c, Size c_step) {
  using V = typename Vector<T, lanes>::type;
  using Loose = typename Vector<T, lanes>::loose;
  V sum[rows][vectors] = {};
  if constexpr (into != Into::assign) {
    // C often comes from far memory; it arrives while the products run.
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors * lanes; v += 64 / static_cast<int>(sizeof(T)))
        __builtin_prefetch(c + i * c_step + v, 1);
  }
  const T* r = right + begin * right_step;
  const T* l = left + begin * step;
  for (Size k = begin; k < end; ++k, r += right_step, l += step) {
    V x[vectors];
    for (int v = 0; v < vectors; ++v) x[v] = *reinterpret_cast<const Loose*>(r + v * lanes);
    for (int i = 0; i < rows; ++i) {
      const T a = l[i * row];
      for (int v = 0; v < vectors; ++v) sum[i][v] += a * x[v];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) {
      Loose* out = reinterpret_cast<Loose*>(c + i * c_step + v * lanes);
      if constexpr (into == Into::assign) *out = sum[i][v];
      if constexpr (into == Into::add) *out += sum[i][v];
      if constexpr (into == Into::subtract) *out -= sum[i][v];
    }
  }
}

template <class T, int lanes, int vectors, Into into>
MERCER_INLINE void some_rows(Size rows, Size begin, Size end, const T* left, Size row,
                             Size step, const T* right, Size right_step, T* c,
                             Size c_step) {
  switch (rows) {
    case 6:
      return block<T, lanes, vectors, 6, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
    case 5:
      return block<T, lanes, vectors, 5, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
    case 4:
      return block<T, lanes, vectors, 4, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
    case 3:
      return block<T, lanes, vectors, 3, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
    case 2:
      return block<T, lanes, vectors, 2, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
    default:
      return block<T, lanes, vectors, 1, into>(begin, end, left, row, step, right, right_step, c,
                                            c_step);
  }
}

template <class T, int lanes, int vectors, Into into>
MERCER_INLINE void all_rows(Shape shape, Size rows, Size depth, Left<T> left, const T* right,
                            Size right_step, T* c, Size c_step) {
  for (Size i = 0; i < rows; i += kRows) {
    const Size height = std::min(kRows, rows - i);
    const Size begin = shape == Shape::upper ? std::min(i, depth) : 0;
    const Size end = shape == Shape::lower ? std::min(i + height, depth) : depth;
    for (Size column = 0; column < kStrip; column += lanes * vectors) {
      some_rows<T, lanes, vectors, into>(height, begin, end, left.data + i * left.row, left.row,
                                      left.step, right + column, right_step,
                                      c + i * c_step + column, c_step);
    }
  }
}

template <class T, int lanes, int vectors>
MERCER_INLINE void any_mode(Into into, Shape shape, Size rows, Size depth, Left<T> left,
                            const T* right, Size right_step, T* c, Size c_step) {
  switch (into) {
    case Into::assign:
      return all_rows<T, lanes, vectors, Into::assign>(shape, rows, depth, left, right, right_step, c,
                                                    c_step);
    case Into::add:
      return all_rows<T, lanes, vectors, Into::add>(shape, rows, depth, left, right, right_step, c,
                                                 c_step);
    case Into::subtract:
      return all_rows<T, lanes, vectors, Into::subtract>(shape, rows, depth, left, right, right_step,
                                                      c, c_step);
  }
}

#ifdef MERCER_X86
template <class T>
MERCER_TARGET_512 void multiply_512(Into into, Shape shape, Size rows, Size depth, Left<T> left,
                                    const T* right, Size right_step, T* c, Size c_step) {
  constexpr int lanes = 64 / sizeof(T);
  any_mode<T, lanes, kStrip / lanes>(into, shape, rows, depth, left, right, right_step, c, c_step);
}

template <class T>
MERCER_TARGET_256 void multiply_256(Into into, Shape shape, Size rows, Size depth, Left<T> left,
                                    const T* right, Size right_step, T* c, Size c_step) {
  any_mode<T, 32 / sizeof(T), 2>(into, shape, rows, depth, left, right, right_step, c, c_step);
}

constexpr int kPlainVectors = 2;  // of 16 registers
#else
constexpr int kPlainVectors = 4;  // of 32 registers (aarch64)
#endif

}  // namespace

template <class T>
void multiply(Into into, Shape shape, Size rows, Size depth, std::type_identity_t<Left<T>> left,
              std::type_identity_t<const T*> right, Size right_step, T* c, Size c_step) {
#ifdef MERCER_X86
  if (level() == Level::widest)
    return multiply_512(into, shape, rows, depth, left, right, right_step, c, c_step);
  if (level() == Level::wide)
    return multiply_256(into, shape, rows, depth, left, right, right_step, c, c_step);
#endif
  any_mode<T, 16 / sizeof(T), kPlainVectors>(into, shape, rows, depth, left, right, right_step, c,
                                             c_step);
}

template void multiply<float>(Into, Shape, Size, Size, Left<float>, const float*, Size, float*,
                              Size);
template void multiply<double>(Into, Shape, Size, Size, Left<double>, const double*, Size, double*,
                               Size);

}  // namespace mercer::algebra
