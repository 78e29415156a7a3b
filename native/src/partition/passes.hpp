// The loops over rows that partitions are made of, for each instruction set.
#pragma once

#include <cstdint>

#include "runtime/size.hpp"

namespace mercer::partition {

using Label = std::int32_t;

constexpr Size kPadding = 8;  // tables of centres are padded to a multiple of this many

// Sums are in float64 whatever K is: thousands of rows are added and taken away again.
template <class Entry>
struct Passes {
  // sum += w row
  void (*add)(const Entry* row, double w, Size count, double* sum);
  // from -= w row, to += w row
  void (*shift)(const Entry* row, double w, Size count, double* from, double* to);
};

struct SumPasses {
  // best[t] = min(best[t], slope sums[t] + level), and next[t] = c where that is lower
  void (*nearer)(const double* sums, double slope, double level, Label c, Size count, double* best,
                 Label* next);
  // best[t] = min(best[t], W / (W + w[t]) (diagonal[t] + slope sums[t] + level)) where labels != c
  void (*joining)(const double* sums, double slope, double level, double weight, const double* w,
                  const double* diagonal, const Label* labels, Label c, Size count, double* best);
};

struct FeaturePasses {
  // out[r][c] = rows[r]' centre c for up to four rows; table is (width, padded), out (4, padded)
  void (*products)(const double* const* rows, int count, Size width, const double* table,
                   Size padded, double* out);
  void (*sparse_product)(const std::int32_t* columns, const double* values, Size filled,
                         const double* table, Size padded, double* out);
  double (*dot)(const double* a, const double* b, Size width);
};

}  // namespace mercer::partition
