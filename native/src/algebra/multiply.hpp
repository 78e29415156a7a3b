// The one product all dense algorithms here are made of: a matrix times a strip of 32 columns.
//
// An own product instead of a BLAS call, because it runs inside our own threads (two pools fight
// for the cores), at any size without set-up, on triangular factors without wasted work, and stops
// at the end of a tile when the user interrupts.
#pragma once

#include <type_traits>

#include "algebra/products.hpp"
#include "runtime/dispatch.hpp"

namespace mercer::algebra {

// See Products::multiply.
template <class T>
void multiply(Into into, Shape shape, Size rows, Size depth, std::type_identity_t<Left<T>> left,
              std::type_identity_t<const T*> right, Size right_step, T* c, Size c_step) {
  table<Products<T>>().multiply(into, shape, rows, depth, left, right, right_step, c, c_step);
}

}  // namespace mercer::algebra
