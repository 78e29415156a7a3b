// Sums of rows of K over the columns of a level, in double precision.
#pragma once

#include <vector>

#include "svm/descent/state.hpp"

namespace mercer::svm {

// What variables move by, with their rows of K.
template <class Entry>
struct Moves {
  void add(const Entry* row, double weight) {
    rows.push_back(row);
    weights.push_back(weight);
  }
  bool empty() const { return rows.empty(); }

  std::vector<const Entry*> rows;
  std::vector<double> weights;
};

// sums[t] = the sum over the moves of weight K_rt, for every place of the runs of the level. Goes
// on when the poll asks to stop: half a sum would be a wrong F.
template <class Entry>
void sum_rows(const DescentState<Entry>& level, Moves<Entry> moves, const Worker& worker, double* sums);

}  // namespace mercer::svm
