// The one product all dense algorithms here are made of: a matrix times a strip of 32 columns.
//
// An own product instead of a BLAS call, because it runs inside our own threads (two pools fight
// for the cores), at any size without set-up, on triangular factors without wasted work, and stops
// at the end of a tile when the user interrupts.
#pragma once

#include <cstddef>
#include <type_traits>

namespace mercer::algebra {

using Size = std::ptrdiff_t;

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

// C[rows x 32] (=, +=, -=) left[rows x depth] * right[depth x 32]; `right_step` and `c_step` are
// the distances between rows. C must not overlap the factors.
template <class T>
void multiply(Into into, Shape shape, Size rows, Size depth, std::type_identity_t<Left<T>> left,
              std::type_identity_t<const T*> right, Size right_step, T* c, Size c_step);

constexpr Size round_up(Size value, Size unit) { return (value + unit - 1) / unit * unit; }

}  // namespace mercer::algebra
