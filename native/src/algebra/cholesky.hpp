// Cholesky factors of dense matrices, in place and interruptible.
#pragma once

#include "algebra/multiply.hpp"
#include "runtime/poll.hpp"

namespace mercer::algebra {

// A = L L' for the n x n matrix with rows `ld` apart: reads the lower triangle and writes L there,
// leaves the upper one alone. Returns 0, or the one-based order of the first leading minor that is
// not positive (or not a number); the matrix is then partly factored.
template <class T>
Size cholesky(T* a, Size n, Size ld, int threads, Poll& poll);

// The same, to the last digit, in the calling thread, which may be one of the pool's.
template <class T>
Size cholesky_serial(T* a, Size n, Size ld);

// X <- L^-1 X for a lower triangular L of order n and 32 columns X, rows 32 apart.
template <class T>
void solve_lower(const T* l, Size n, Size ld, T* x);

}  // namespace mercer::algebra
