// Box programmes that differ by factors on their bounds, kinks, shifts and sums: each begins where an
// earlier one ended.
#pragma once

#include <vector>

#include "svm/problem.hpp"

namespace mercer::svm {

struct Stage {
  double bound, kink, shift, total;  // factors
  Size from;                         // stage to begin at; -1: the start of the chain
};

// `box.gradient` is the linear term here. The variables of group g sum to total * totals[g], groups
// in order of their numbers.
struct Chain {
  Box box;
  const double* totals;
  Size groups;
  std::vector<Stage> stages;
  const std::int64_t* judged;  // rows of K where sums over b are wanted
  Size judged_count;
};

// Arrays of a row for each stage.
struct ChainAnswer {
  double *b, *gradient, *offsets, *values;
  std::int64_t* iterations;
  double* violation;  // infinite where the stage was not reached
};

// Answers do not depend on the number of threads.
template <class Entry>
void solve_chains(const Matrix<Entry>& matrix, const std::vector<Chain>& chains,
                  std::vector<ChainAnswer>& answers, double tol, std::int64_t max_iter,
                  int threads, Poll& poll, Progress& progress);

// Fills `values` of answers whose stages are solved, adding to the zeros that are there.
template <class Entry>
void judge_chains(const Matrix<Entry>& matrix, const std::vector<Chain>& chains,
                  const std::vector<ChainAnswer>& answers, int threads, Poll& poll);

}  // namespace mercer::svm
