// Sequential minimal optimisation on a stored kernel matrix.
#pragma once

#include <cstdint>

#include "mercer/algebra_multiply.hpp"
#include "mercer/poll.hpp"

namespace mercer::algebra {

// Minimise b'Kb/2 - linear'b over lower <= b <= upper, with sum(b) kept. Rows of K are `ld` apart.
template <class Entry>
struct BoxProblem {
  const Entry* k;
  Size n, ld;
  const double* linear;
  const double* lower;
  const double* upper;
};

struct SmoResult {
  std::int64_t iterations;
  double violation;  // NaN when the gradient is no longer finite
};

// Improves the feasible `b` in place until the largest violation is at most `tol`, or `max_iter`
// steps are done, or `poll` asks for a stop. `sofar` is kept up to date whenever `poll` looks.
// Entry is float or double.
template <class Entry>
void smo(const BoxProblem<Entry>& problem, double* b, double tol, std::int64_t max_iter,
         int threads, Poll& poll, SmoResult& sofar);

}  // namespace mercer::algebra
