// Symmetric matrices as K = Q B Q' with a narrow band B: reduce once, then treat any shift cheaply.
#pragma once

#include "algebra/multiply.hpp"
#include "runtime/arena.hpp"
#include "runtime/poll.hpp"

namespace mercer::algebra {

// The reflections of the reduction. Step s acts on rows from (s + 1) * width on; the rows of its
// V' are kept in the destroyed matrix, in rows s * width + [0, width), columns from there on.
struct Reflections {
  double* a;  // n x n
  Size n, width, steps;
  Buffer<double> t;   // steps x width x width: the upper triangular factors I - V T V'

  Size start(Size step) const { return (step + 1) * width; }
  const double* factor(Size step) const { return t.data() + step * width * width; }
};

// Reduces the symmetric n x n matrix `a` (C order, lower triangle read, all of it destroyed) to
// half-width `width` >= 1. Writes lower[j * (width + 1) + k] = B[j + k, j]. The result does not
// depend on the number of threads.
Reflections band_reduce(double* a, Size n, Size width, double* lower, int threads, Poll& poll);

// Writes Q' (n x n, C order) of those reflections.
void band_basis(const Reflections& reflections, double* qt, int threads, Poll& poll);

// out[s, :] = diag((Q B Q' + shift_s I)^-1) for every shift; NaN where not positive definite.
void band_inverse_diagonals(const double* qt, const double* lower, Size n, Size width,
                            const double* shifts, Size count, double* out, int threads,
                            Poll& poll);

}  // namespace mercer::algebra
