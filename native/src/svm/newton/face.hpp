// The lowest point of a face of the box, and two ways from face to face.
#pragma once

#include <vector>

#include "svm/newton/border.hpp"
#include "svm/descent/state.hpp"

namespace mercer::svm {

// The number of free variables; 0 where a group has none.
template <class Entry>
Size face_size(const DescentState<Entry>& level);

// The variables strictly inside their pieces of the box span a face, on which the objective is a
// quadratic: a Cholesky factor of K there gives its lowest point. Faces that differ by few
// variables are solved with the same factor, bordered by those.
template <class Entry, class Real>
class Face {
 public:
  Face(DescentState<Entry>& level, double tol, const Worker& worker);

  // To the lowest point, wherever that is: what is out of its piece then is put on the bound, what
  // should leave its bound joins. Near the solution a handful of rounds do, far from it they
  // wander: false where they did not end there, and the level is as it was.
  bool jump();

  // Never out of the box: to the first bound, or to the lowest point, where some join. Each round
  // ends below the last one, so the level keeps what was gained; true when it is at its solution.
  bool walk(Size rounds);

 private:
  // A column beside the factor's matrix: the sum of a group (no place), a variable of the factor
  // that is no longer free, or a free one that is not in the factor.
  struct Border {
    Size place = -1;
    int group = -1;
    bool added = false;  // a variable that is not in the factor
    bool active = true;
  };

  bool is_free(Size t) const { return free_[static_cast<std::size_t>(t)] != 0; }
  Size index(Size t) const { return index_[static_cast<std::size_t>(t)]; }
  std::size_t group(Size t) const { return static_cast<std::size_t>(level_.group_of(t)); }

  // The ends of the piece of the box that a variable is in: the kink parts it.
  double low_end(Size t) const {
    const bool above = level_.kink[t] > 0.0 && sign_[t] > 0.0;
    return above ? std::max(level_.lower[t], 0.0) : level_.lower[t];
  }
  double high_end(Size t) const {
    const bool below = level_.kink[t] > 0.0 && sign_[t] < 0.0;
    return below ? std::min(level_.upper[t], 0.0) : level_.upper[t];
  }
  double end(Size t) const { return d_[t] > 0.0 ? high_end(t) : low_end(t); }

  // What is equal on all free variables of a group, at the lowest point of a face.
  double slope(Size t) const { return f_[t] - level_.kink[t] * sign_[t]; }
  // F + up and F + low, as in the descent.
  double rising(Size t) const {
    if (!(b_[t] < level_.upper[t])) return -kNever;
    return f_[t] + (b_[t] < 0.0 ? level_.kink[t] : -level_.kink[t]);
  }
  double falling(Size t) const {
    if (!(b_[t] > level_.lower[t])) return kNever;
    return f_[t] + (b_[t] > 0.0 ? -level_.kink[t] : level_.kink[t]);
  }
  // By how much a variable at a bound should leave it.
  double pull(Size t) const {
    return std::max(rising(t) - offset_[group(t)], offset_[group(t)] - falling(t));
  }

  double entry(Size s, Size t) const {
    return static_cast<double>(level_.row(s)[level_.column_of(t)]) +
           (s == t ? level_.shift[t] + ridge_ : 0.0);
  }

  bool factor();
  bool crowded() const;
  bool renew() { return !crowded() || factor(); }
  void add(const Border& border);
  double corner(const Border& a, const Border& b) const;
  double wanted(const Border& border) const;
  bool solve();
  bool balance();
  bool move();
  void join(Size t);
  void leave(Size t);
  void border(Size t);
  void find_offsets();
  double gap() const;
  void keep();

  // Of jump.
  Size change();
  void settle();

  // Of walk.
  bool refuse();
  double part() const;
  void stop();
  bool join_some();

  DescentState<Entry>& level_;
  const Worker& worker_;
  double tol_;
  Buffer<double> doubles_;
  double *b_, *f_, *sign_, *d_, *sums_;
  std::vector<char> free_;
  std::vector<std::int32_t> index_;       // row of the factor of a place; -1: none
  std::vector<double> missing_, offset_;  // by group
  std::vector<Size> base_;                // places of the factor's rows
  double ridge_ = 0.0;
  Bordered<Real> system_;
  std::vector<Border> borders_;
};

}  // namespace mercer::svm
