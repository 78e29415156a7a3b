// Sums over coefficients at rows of K, for each instruction set.
#pragma once

#include "svm/passes.hpp"

namespace mercer::svm {

constexpr Size kTileColumns = 128;  // of K: copied to one place, where all chains find them
constexpr Size kStagesAtOnce = 3;   // with the same rows, more or less

// sums[s][t] += the sum over r of weights[r][s] tile[places[r]][t], for t < columns and s < stages.
// Rows of the tile have kTileColumns entries, weights kStagesAtOnce, rows of sums are `apart`. Few
// terms are added in the type of K, the rest in double.
template <class Entry>
struct Expand {
  void (*add)(const Entry* tile, Size columns, const std::int32_t* places, const Entry* weights,
              Size count, Size stages, double* sums, Size apart);
};

}  // namespace mercer::svm
