// The linear system of a face, and the state that goes along its solution.
#include "svm/newton/face.hpp"

#include <algorithm>
#include <cmath>

#include "svm/path/sums.hpp"

namespace mercer::svm {
namespace {

constexpr Size kMostBorders = 320;
constexpr Size kFewBorders = 64;
constexpr double kManyBorders = 0.3;  // of the factor's order: a new factor costs less than more

}  // namespace

template <class Entry>
Size face_size(const DescentState<Entry>& level) {
  std::vector<Size> count(static_cast<std::size_t>(level.groups), 0);
  level.each([&](Size t) {
    if (level.is_free(t)) ++count[static_cast<std::size_t>(level.group_of(t))];
  });
  Size all = 0;
  for (const Size some : count) {
    if (some == 0) return 0;
    all += some;
  }
  return all;
}

template <class Entry, class Real>
Face<Entry, Real>::Face(DescentState<Entry>& level, double tol, const Worker& worker)
    : level_(level),
      worker_(worker),
      tol_(tol),
      doubles_(5 * level.size),
      free_(static_cast<std::size_t>(level.size), 0),
      index_(static_cast<std::size_t>(level.size), -1),
      missing_(static_cast<std::size_t>(level.groups), 0.0),
      offset_(static_cast<std::size_t>(level.groups), 0.0) {
  b_ = doubles_.data(), f_ = b_ + level.size, sign_ = f_ + level.size;
  d_ = sign_ + level.size, sums_ = d_ + level.size;
  level.each([&](Size t) {
    b_[t] = level.b[t];
    f_[t] = static_cast<double>(level.f[t]);
    free_[static_cast<std::size_t>(t)] = level.is_free(t);
    sign_[t] = b_[t] > 0.0 ? 1.0 : -1.0;
  });
}

// K between the free variables, and its factor; the only borders are the sums of groups.
template <class Entry, class Real>
bool Face<Entry, Real>::factor() {
  base_.clear(), borders_.clear();
  std::fill(index_.begin(), index_.end(), -1);
  double largest = 0.0;
  level_.each([&](Size t) {
    if (!is_free(t)) return;
    index_[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(base_.size());
    base_.push_back(t);
    largest = std::max(largest, std::abs(static_cast<double>(level_.diag[t])));
  });
  const Size n = static_cast<Size>(base_.size());
  // K is positive semidefinite but for its rounding; where that matters, rounds repeat
  ridge_ = std::max<double>(std::numeric_limits<Entry>::epsilon(),
                            std::numeric_limits<Real>::epsilon()) *
           std::sqrt(static_cast<double>(n)) * largest;
  std::vector<Size> columns;
  for (const Size t : base_) columns.push_back(level_.column_of(t));
  Real* to = system_.begin(n);
  for (Size i = 0; i < n; ++i, to += n) {
    const Size t = base_[static_cast<std::size_t>(i)];
    const Entry* row = level_.row(t);
    for (Size j = 0; j <= i; ++j)
      to[j] = static_cast<Real>(row[columns[static_cast<std::size_t>(j)]]);
    to[i] += static_cast<Real>(level_.shift[t] + ridge_);
  }
  if (!system_.factor(worker_)) return false;
  for (int g = 0; g < level_.groups; ++g) add({-1, g});
  return true;
}

template <class Entry, class Real>
bool Face<Entry, Real>::crowded() const {
  const double many = kManyBorders * static_cast<double>(system_.order());
  return system_.count() > kMostBorders ||
         (system_.count() > kFewBorders && static_cast<double>(system_.count()) > many);
}

template <class Entry, class Real>
void Face<Entry, Real>::add(const Border& border) {
  std::vector<double> column;
  column.reserve(base_.size());
  for (const Size t : base_) {
    if (border.place < 0)
      column.push_back(level_.group_of(t) == border.group ? 1.0 : 0.0);
    else if (border.added)
      column.push_back(static_cast<double>(level_.row(border.place)[level_.column_of(t)]));
    else
      column.push_back(t == border.place ? 1.0 : 0.0);
  }
  system_.add(std::move(column));
  borders_.push_back(border);
}

// What two borders have in common beyond the factor's matrix.
template <class Entry, class Real>
double Face<Entry, Real>::corner(const Border& a, const Border& b) const {
  if (a.added && b.added) return entry(a.place, b.place);
  const bool joins = (a.added && b.place < 0) || (b.added && a.place < 0);
  return joins && a.group == b.group ? 1.0 : 0.0;
}

template <class Entry, class Real>
double Face<Entry, Real>::wanted(const Border& border) const {
  if (border.place < 0) return missing_[static_cast<std::size_t>(border.group)];
  return border.added ? slope(border.place) : 0.0;
}

// d, the way to the lowest point of the present face.
template <class Entry, class Real>
bool Face<Entry, Real>::solve() {
  std::vector<Size> used;
  for (std::size_t c = 0; c < borders_.size(); ++c)
    if (borders_[c].active) used.push_back(static_cast<Size>(c));
  std::vector<double> right, corners, sides, x, z;
  for (const Size t : base_) right.push_back(slope(t));
  for (const Size p : used) {
    const Border& one = borders_[static_cast<std::size_t>(p)];
    sides.push_back(wanted(one));
    for (const Size q : used)
      corners.push_back(corner(one, borders_[static_cast<std::size_t>(q)]));
  }
  if (!system_.solve(right, used, corners, sides, x, z)) return false;
  level_.each([&](Size t) {
    const bool inside = is_free(t) && index(t) >= 0;
    d_[t] = inside ? x[static_cast<std::size_t>(index(t))] : 0.0;
  });
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Border& border = borders_[static_cast<std::size_t>(used[i])];
    if (border.added) d_[border.place] = z[i];
  }
  return balance();
}

// The sums of d are to be what is missing to the last digit; false where nothing could carry it.
template <class Entry, class Real>
bool Face<Entry, Real>::balance() {
  std::vector<double> off = missing_;
  std::vector<Size> count(missing_.size(), 0);
  level_.each([&](Size t) {
    if (!is_free(t)) return;
    off[group(t)] -= d_[t];
    ++count[group(t)];
  });
  for (std::size_t g = 0; g < off.size(); ++g) {
    if (count[g] == 0 || !std::isfinite(off[g])) return false;
    off[g] /= static_cast<double>(count[g]);
  }
  level_.each([&](Size t) {
    if (is_free(t)) d_[t] += off[group(t)];
  });
  return true;
}

// b += d, and F with it; false when numbers overflow.
template <class Entry, class Real>
bool Face<Entry, Real>::move() {
  Moves<Entry> moves;
  level_.each([&](Size t) {
    if (d_[t] != 0.0) moves.add(level_.row(t), d_[t]);
  });
  if (moves.empty()) return true;
  sum_rows(level_, std::move(moves), worker_, sums_);
  double poison = 0.0;  // 0, or NaN
  level_.each([&](Size t) {
    b_[t] += d_[t];
    f_[t] -= sums_[t] + level_.shift[t] * d_[t];
    poison += 0.0 * f_[t];
  });
  return poison == 0.0;
}

// Frees a variable at a bound, in the piece of the box that it is pulled into.
template <class Entry, class Real>
void Face<Entry, Real>::join(Size t) {
  const bool rises = rising(t) > offset_[group(t)];
  sign_[t] = b_[t] > 0.0 || (b_[t] == 0.0 && rises) ? 1.0 : -1.0;
  free_[static_cast<std::size_t>(t)] = 1;
  border(t);
}

template <class Entry, class Real>
void Face<Entry, Real>::leave(Size t) {
  free_[static_cast<std::size_t>(t)] = 0;
  border(t);
}

// A variable has a border where the factor does not agree with whether it is free.
template <class Entry, class Real>
void Face<Entry, Real>::border(Size t) {
  const bool inside = index(t) >= 0, needed = inside != is_free(t);
  for (Border& known : borders_)
    if (known.place == t) {
      known.active = needed;
      return;
    }
  add({t, level_.group_of(t), !inside, needed});
}

// The mean slope of the free variables.
template <class Entry, class Real>
void Face<Entry, Real>::find_offsets() {
  std::vector<Size> count(offset_.size(), 0);
  std::fill(offset_.begin(), offset_.end(), 0.0);
  level_.each([&](Size t) {
    if (!is_free(t)) return;
    offset_[group(t)] += slope(t);
    ++count[group(t)];
  });
  for (std::size_t g = 0; g < offset_.size(); ++g)
    offset_[g] /= static_cast<double>(std::max<Size>(1, count[g]));
}

template <class Entry, class Real>
double Face<Entry, Real>::gap() const {
  std::vector<double> top(offset_.size(), -kNever), bottom(offset_.size(), kNever);
  level_.each([&](Size t) {
    top[group(t)] = std::max(top[group(t)], rising(t));
    bottom[group(t)] = std::min(bottom[group(t)], falling(t));
  });
  double widest = -kNever;
  for (std::size_t g = 0; g < top.size(); ++g) widest = std::max(widest, top[g] - bottom[g]);
  return widest;
}

template <class Entry, class Real>
void Face<Entry, Real>::keep() {
  level_.each([&](Size t) {
    level_.b[t] = b_[t];
    level_.f[t] = static_cast<Entry>(f_[t]);
    level_.refresh(t, b_[t]);
  });
  level_.trail.i = level_.trail.j = -1;  // no pair has just been moved
}

template Size face_size(const DescentState<float>&);
template Size face_size(const DescentState<double>&);
template class Face<float, float>;
template class Face<float, double>;
template class Face<double, double>;

}  // namespace mercer::svm
