// Where the variables of a box lie in the state of a descent, and the matrix it sweeps.
#pragma once

#include <vector>

#include "svm/descent/state.hpp"

namespace mercer::svm {

// The places of the state in order: by group, else as given. A place may hold no variable.
struct Order {
  std::vector<std::int32_t> variable;  // -1: none, only a row in between
  std::vector<std::int64_t> row;       // of K
  std::vector<int> group;
  int groups = 1;

  void add(std::int32_t v, std::int64_t r, int g) {
    variable.push_back(v);
    row.push_back(r);
    group.push_back(g);
  }
};

// Long runs of rows are swept in place; short ones in a copy.
template <class Entry>
class Frame {
 public:
  Frame(const Matrix<Entry>& matrix, const Box& box);

  // May end early when the poll stops it: then a copy is half made.
  void give_matrix(const Worker& worker);
  bool copied() const { return copied_; }

  // fn(place, variable or -1, row of K) for every place.
  template <class F>
  void each(F&& fn) const {
    std::size_t next = 0;
    level.each([&](Size t) {
      fn(t, order_.variable[next], static_cast<Size>(order_.row[next]));
      ++next;
    });
  }

 private:
  DescentState<Entry> layout(Size n);

  Matrix<Entry> matrix_;
  Order order_;
  bool copied_ = false;
  Buffer<Entry> copy_;
  Buffer<std::int64_t> places_;

 public:
  DescentState<Entry> level;  // last: made from the others
};

}  // namespace mercer::svm
