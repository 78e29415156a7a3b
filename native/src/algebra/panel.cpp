// Blocked Householder factorisation of a transposed panel.
//
// The panel is stored by columns, so reflections are products of long contiguous rows. Columns go
// in blocks of 16: one by one inside a block, all at once (compact WY form) for what is to its
// right. No scaling against overflow: entries near 1e150 are not kernel values.
#include "algebra/panel.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/arena.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kBlock = 16;

template <class... Given>
void dots(Given... given) {
  table<Dots>().dots(given...);
}

// Subtracts sum_k weight(i, k) v_k from `rows` rows, for `depth` rows v of the same length.
void subtract_rows(Left<double> weight, Size depth, const double* v, double* rows, Size count,
                   Size length,
                   Size ld) {
  for (Size at = 0; at < length; at += kStrip)
    multiply(Into::subtract, Shape::full, count, depth, weight, v + at, ld, rows + at, ld);
}

// Turns the column x (entries before `head` belong to R already) into the vector of the reflection
// I - tau v v' that maps it to (.., beta, 0, ..); returns tau.
double reflect(double* x, Size head, Size rows, double* beta) {
  const double alpha = x[head];
  double tail = 0.0;
  dots(x + head + 1, 1, 0, x + head + 1, 1, 0, rows - head - 1, false, &tail, 1);
  std::fill_n(x, head, 0.0);
  x[head] = 1.0;
  *beta = alpha;
  if (tail == 0.0) return 0.0;
  const double norm = std::sqrt(alpha * alpha + tail);
  *beta = alpha > 0.0 ? -norm : norm;
  const double scale = 1.0 / (alpha - *beta);
  for (Size k = head + 1; k < rows; ++k) x[k] *= scale;
  return (*beta - alpha) / *beta;
}

// T of a product of reflections from their tau and the products V'V; column by column.
void form_t(const double* products, Size step, const double* tau, Size columns, double* t,
            Size t_step) {
  for (Size j = 0; j < columns; ++j) {
    for (Size i = 0; i < j; ++i) {
      double total = 0.0;
      for (Size k = i; k < j; ++k) total += t[i * t_step + k] * products[k * step + j];
      t[i * t_step + j] = -tau[j] * total;
    }
    t[j * t_step + j] = tau[j];
    for (Size i = j + 1; i < columns; ++i) t[i * t_step + j] = 0.0;
  }
}

struct Panel {
  double* p;
  Size columns, rows, ld;
  double* r;

  double* column(Size c) const { return p + c * ld; }
  Size padded() const { return round_up(rows, kStrip); }

  // Columns [first, last) one after the other; reflections act inside the block only.
  void factor_block(Size first, Size last, double* tau) const {
    double product[kBlock];
    for (Size c = first; c < last; ++c) {
      const Size head = std::min(c, rows);
      std::copy_n(column(c), head, r_column(c, 0));
      if (head == rows) {  // wider than tall: nothing is left to reflect
        std::fill_n(column(c), padded(), 0.0);
        tau[c] = 0.0;
        continue;
      }
      tau[c] = reflect(column(c), head, rows, r_column(c, head));
      const Size rest = last - c - 1;
      dots(column(c + 1), rest, ld, column(c), 1, ld, rows, false, product, 1);
      for (Size i = 0; i < rest; ++i) product[i] *= tau[c];
      subtract_rows({product, 1, 1}, 1, column(c), column(c + 1), rest, padded(), ld);
    }
  }

  // Applies the reflections [first, last) to all columns to their right.
  void apply_block(Size first, Size last, const double* tau) const {
    const Size rest = columns - last, width = last - first;
    if (rest == 0) return;
    double products[kBlock * kBlock], t[kBlock * kBlock];
    dots(column(first), width, ld, column(first), width, ld, rows, true, products, kBlock);
    form_t(products, kBlock, tau + first, width, t, kBlock);
    Buffer<double> with_v(rest * kBlock), weight(rest * kBlock);
    dots(column(last), rest, ld, column(first), width, ld, rows, false, with_v.data(), kBlock);
    for (Size i = 0; i < rest; ++i) {
      for (Size j = 0; j < width; ++j) {
        double total = 0.0;
        for (Size k = 0; k <= j; ++k) total += with_v.data()[i * kBlock + k] * t[k * kBlock + j];
        weight.data()[i * kBlock + j] = total;
      }
    }
    subtract_rows({weight.data(), kBlock, 1}, width, column(first), column(last), rest, padded(),
                  ld);
  }

 private:
  // R is filled transposed (a column of the panel is contiguous) and turned at the end.
  double* r_column(Size c, Size i) const { return r + c * columns + i; }
};

void transpose_square(double* a, Size n) {
  for (Size i = 0; i < n; ++i)
    for (Size j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
}

}  // namespace

void panel_qr(double* p, Size columns, Size rows, Size ld, double* t, double* r) {
  const Panel panel{p, columns, rows, ld, r};
  Buffer<double> tau(columns), products(columns * columns);
  std::fill_n(r, columns * columns, 0.0);
  for (Size first = 0; first < columns; first += kBlock) {
    const Size last = std::min(columns, first + kBlock);
    panel.factor_block(first, last, tau.data());
    panel.apply_block(first, last, tau.data());
  }
  transpose_square(r, columns);
  dots(p, columns, ld, p, columns, ld, rows, true, products.data(), columns);
  form_t(products.data(), columns, tau.data(), columns, t, columns);
}

}  // namespace mercer::algebra
