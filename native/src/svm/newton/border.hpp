// Linear systems with one Cholesky factor, and some rows and columns more.
#pragma once

#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "svm/problem.hpp"

namespace mercer::svm {

// A of order n, factored once; B' A^-1 B grows with every column of B that is added. For what is
// missing in A, or too much there, a few columns cost less than another factor.
template <class Real>
class Bordered {
 public:
  // Room for the lower triangle of A, rows n apart; forgets all borders.
  Real* begin(Size n);
  // False when A is not positive definite, or the poll asked to stop.
  bool factor(const Worker& worker);

  Size order() const { return n_; }
  Size count() const { return static_cast<Size>(at_.size() + pending_.size()); }

  // Adds a column of B; they are numbered from 0.
  void add(std::vector<double> column) { pending_.push_back(std::move(column)); }

  // x and z of A x + B z = right, B' x + D z = wanted, with the `used` columns of B only; `corner`
  // is D by rows, and is overwritten. False when the system is singular.
  bool solve(const std::vector<double>& right, const std::vector<Size>& used,
             std::vector<double>& corner, const std::vector<double>& wanted,
             std::vector<double>& x, std::vector<double>& z);

 private:
  void take_in();
  void take_in_strip(std::size_t first, std::size_t count);
  void take_in_one(std::vector<double> column);
  void begin_strip();
  Real* square(Size s, Size t);
  double product(Size a, Size b) const;
  void forward(std::vector<double>& x) const;
  void backward(std::vector<double>& x) const;
  void project(const std::vector<double>& x, std::vector<double>& sums) const;

  const Passes<Real>& pass_ = table<Passes<Real>>();
  Size n_ = 0;
  Buffer<Real> l_;
  std::vector<std::vector<double>> pending_;
  std::vector<Size> at_;              // places of borders in the strips
  std::vector<Buffer<Real>> strips_;  // L^-1 B, 32 columns at a time
  Size next_ = 0;                     // place that is not taken
  std::vector<Real> products_;        // of strips s and t <= s, 32 x 32 each
};

}  // namespace mercer::svm
