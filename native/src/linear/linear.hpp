// Rows of features for solvers in the primal space: products, and dual coordinate descent.
#pragma once

#include <cstdint>

#include "linear/rows.hpp"
#include "runtime/poll.hpp"

namespace mercer::linear {

// out[i] = rows[i]'w.
void times(const DenseRows& rows, const double* w, double* out, int threads, Poll& poll);

// out = sum_i x[i] rows[i]; rows where x is zero are not read.
void pull(const DenseRows& rows, const double* x, double* out, int threads, Poll& poll);

// out (m x m, m = width + groups) = sum_i weight[i] a a' with a = [rows[i] - centre, e_group[i]];
// rows of no weight are not read, a negative group adds no column. The same for any threads.
void gram(const DenseRows& rows, const double* centre, const std::int8_t* group, Size groups,
          const double* weight, double* out, int threads, Poll& poll);

// min b'(XX' + diag(shift))b/2 - linear'b + kink'|b| over the box, with sums of groups.
struct Box {
  const double* linear;
  const double* lower;
  const double* upper;
  const double* shift;      // may be null
  const double* kink;       // may be null
  const std::int8_t* group;  // negative: in no sum
  const double* totals;
  Size groups;
};

struct Descent {
  std::int64_t epochs;
  double violation;  // largest rise plus largest fall, given the offsets
  double astray;     // largest change of an offset that is still to come
};

// Improves b (any point of the box) in place; `weights` (width) and `offsets` (groups) belong to it
// at the end. Sums hold by the method of multipliers, so at the end up to `tol` of an offset.
template <class Rows>
void descend(const Rows& rows, const Box& box, double* b, double* weights, double* offsets,
             double tol, std::int64_t max_epochs, Poll& poll, Descent& sofar);

}  // namespace mercer::linear
