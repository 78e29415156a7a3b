// The nearest columns of every row, found while tiles go by: nothing of size n^2 is stored.
#pragma once

#include "pairs/pairs.hpp"

namespace mercer {

// Rows whose squared distances the tiles hold, for deciding in float64 what a tile of a lower
// precision only guesses. `norms` are the squared lengths of the rows of X around the mean of Y,
// which is where tiles compare them.
struct ExactRows {
  const double* x;
  const double* y;
  const double* norms;
  Size features;
};

struct NearestTask {
  RowSet set;         // consecutive rows
  int count;          // wanted for each
  bool itself;        // Y is X, and no row is its own neighbour
  bool upper;         // every tile serves its rows and its columns; Y is X, the set is all rows
  const ExactRows* exact;  // null: the entries of tiles are the keys themselves
};

// The `count` columns with the smallest keys for every row, by ascending key, equal keys by
// ascending column: index and key are (set.count x count). Where fewer columns have a key that is
// a finite number, the index is -1. Does not depend on the number of threads.
template <class T>
void nearest(Pairs<T>& pairs, const Externals<T>& externals, const NearestTask& task, Size* index,
             double* key, Work work);

}  // namespace mercer
