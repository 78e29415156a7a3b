// Register-blocked products of one instruction set. CMake compiles this file once per
// MERCER_VARIANT.
#include "algebra/products.hpp"

#include "runtime/vector.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kRows = 6;  // rows of a register block: 6 x 4 accumulators of 32 registers

// Vectors of a row of C at a time: a whole strip, or what the registers hold.
template <class T>
constexpr int kVectors = kRegisters < 32 ? 2 : (kStrip / kLanes<T> < 4 ? kStrip / kLanes<T> : 4);

// One register block: `rows` rows of C over k in [begin, end).
template <class T, int rows, Into into>
MERCER_INLINE void block(Size begin, Size end, const T* left, Size row, Size step, const T* right,
                         Size right_step, T* c, Size c_step) {
  constexpr int lanes = kLanes<T>, vectors = kVectors<T>;
  Vec<T> sum[rows][vectors] = {};
  if constexpr (into != Into::assign) {
    // C often comes from far memory; it arrives while the products run.
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < vectors * lanes; v += 64 / static_cast<int>(sizeof(T)))
        __builtin_prefetch(c + i * c_step + v, 1);
  }
  const T* r = right + begin * right_step;
  const T* l = left + begin * step;
  for (Size k = begin; k < end; ++k, r += right_step, l += step) {
    Vec<T> x[vectors];
    for (int v = 0; v < vectors; ++v) x[v] = load(r + v * lanes);
    for (int i = 0; i < rows; ++i) {
      const T a = l[i * row];
      for (int v = 0; v < vectors; ++v) sum[i][v] += a * x[v];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) {
      T* out = c + i * c_step + v * lanes;
      if constexpr (into == Into::assign) store(out, sum[i][v]);
      if constexpr (into == Into::add) store(out, load(out) + sum[i][v]);
      if constexpr (into == Into::subtract) store(out, load(out) - sum[i][v]);
    }
  }
}

// A block of a height that is known only now.
template <class T, int rows, Into into, class... Given>
MERCER_INLINE void some_rows(Size height, Given... given) {
  if constexpr (rows > 1) {
    if (height < rows) return some_rows<T, rows - 1, into>(height, given...);
  }
  block<T, rows, into>(given...);
}

template <class T, Into into>
void all_rows(Shape shape, Size rows, Size depth, Left<T> left, const T* right, Size right_step,
              T* c, Size c_step) {
  for (Size i = 0; i < rows; i += kRows) {
    const Size height = rows - i < kRows ? rows - i : kRows;
    const Size begin = shape != Shape::upper ? 0 : i < depth ? i : depth;
    const Size end = shape == Shape::lower && i + height < depth ? i + height : depth;
    for (Size column = 0; column < kStrip; column += kLanes<T> * kVectors<T>) {
      some_rows<T, kRows, into>(height, begin, end, left.data + i * left.row, left.row, left.step,
                                right + column, right_step, c + i * c_step + column, c_step);
    }
  }
}

template <class T>
void product(Into into, Shape shape, Size rows, Size depth, Left<T> left, const T* right,
             Size right_step, T* c, Size c_step) {
  const auto run = into == Into::assign ? all_rows<T, Into::assign>
                   : into == Into::add  ? all_rows<T, Into::add>
                                        : all_rows<T, Into::subtract>;
  run(shape, rows, depth, left, right, right_step, c, c_step);
}

template <int rows, int columns>
MERCER_INLINE void dot_block(const double* x, Size x_step, const double* y, Size y_step,
                             Size depth, double* out, Size out_step) {
  constexpr int lanes = kLanes<double>;
  Vec<double> sum[rows][columns] = {};
  Size k = 0;
  for (; k + lanes <= depth; k += lanes) {
    Vec<double> right[columns];
    for (int j = 0; j < columns; ++j) right[j] = load(y + j * y_step + k);
    for (int i = 0; i < rows; ++i) {
      const Vec<double> left = load(x + i * x_step + k);
      for (int j = 0; j < columns; ++j) sum[i][j] += left * right[j];
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double total = sum_lanes<double>(sum[i][j]);
      for (Size rest = k; rest < depth; ++rest)
        total += x[i * x_step + rest] * y[j * y_step + rest];
      out[i * out_step + j] = total;
    }
  }
}

template <int rows>
MERCER_INLINE void dot_rows(const double* x, Size x_step, const double* y, Size y_rows,
                            Size y_step, Size depth, Size first, double* out, Size out_step) {
  Size j = first;
  for (; j + 4 <= y_rows; j += 4)
    dot_block<rows, 4>(x, x_step, y + j * y_step, y_step, depth, out + j, out_step);
  for (; j < y_rows; ++j)
    dot_block<rows, 1>(x, x_step, y + j * y_step, y_step, depth, out + j, out_step);
}

void all_dots(const double* x, Size x_rows, Size x_step, const double* y, Size y_rows, Size y_step,
              Size depth, bool upper, double* out, Size out_step) {
  Size i = 0;
  for (; i + 4 <= x_rows; i += 4)
    dot_rows<4>(x + i * x_step, x_step, y, y_rows, y_step, depth, upper ? i : 0,
                out + i * out_step, out_step);
  for (; i < x_rows; ++i)
    dot_rows<1>(x + i * x_step, x_step, y, y_rows, y_step, depth, upper ? i : 0,
                out + i * out_step, out_step);
}

template <class T>
constexpr Products<T> kProducts = {product<T>};
constexpr Dots kDots = {all_dots};

}  // namespace
}  // namespace mercer::algebra

namespace mercer {

template <>
const algebra::Products<float>& MERCER_VARIANT::table() {
  return algebra::kProducts<float>;
}
template <>
const algebra::Products<double>& MERCER_VARIANT::table() {
  return algebra::kProducts<double>;
}
template <>
const algebra::Dots& MERCER_VARIANT::table() {
  return algebra::kDots;
}

}  // namespace mercer
