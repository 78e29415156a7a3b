// Rows of features, and the border to the vector code that runs over them.
#pragma once

#include <cstdint>

#include "runtime/size.hpp"

namespace mercer::linear {

// Dense rows, `width` apart; row i is row index[i] of the data when there is an index.
struct DenseRows {
  const double* data;
  Size count, width;
  const std::int64_t* index;

  const double* row(Size i) const { return data + (index ? index[i] : i) * width; }
};

// Compressed sparse rows.
struct SparseRows {
  const std::int64_t* begin;
  const std::int32_t* columns;
  const double* values;
  Size count, width;
  const std::int64_t* index;

  Size number(Size i) const { return index ? index[i] : i; }
};

struct RowLoops {
  // out[i] = rows[i]'w for i in [begin, end)
  void (*times)(const DenseRows& rows, const double* w, double* out, Size begin, Size end);
  // out += sum_i x[i] rows[i] over i in [begin, end); rows where x is zero are not read
  void (*pull)(const DenseRows& rows, const double* x, double* out, Size begin, Size end);
};

}  // namespace mercer::linear
