// The border to the vector code of the dense algorithms.
#pragma once

#include "runtime/size.hpp"

namespace mercer::algebra {

constexpr Size kStrip = 32;  // columns of the right factor and of the result

// Element (i, k) at data[i * row + k * step].
template <class T>
struct Left {
  const T* data;
  Size row;
  Size step;
};

enum class Into { assign, add, subtract };

// Which elements of the left factor are not known to be zero: all, k >= i, or k <= i.
enum class Shape { full, upper, lower };

template <class T>
struct Products {
  // C[rows x 32] (=, +=, -=) left[rows x depth] * right[depth x 32]; `right_step` and `c_step` are
  // the distances between rows. C must not overlap the factors.
  void (*multiply)(Into into, Shape shape, Size rows, Size depth, Left<T> left, const T* right,
                   Size right_step, T* c, Size c_step);
};

struct Dots {
  // out[i, j] = x_i . y_j for rows of length `depth`; `upper` leaves out j < i (roughly: by fours).
  void (*dots)(const double* x, Size x_rows, Size x_step, const double* y, Size y_rows, Size y_step,
               Size depth, bool upper, double* out, Size out_step);
};

}  // namespace mercer::algebra
