// Newton's steps from face to face.
//
// The variables strictly inside their pieces of the box span a face, on which the objective is a
// quadratic: a Cholesky factor of K there gives its lowest point. What this carries out of its piece
// is put on the bound, what should leave its bound joins, and the next face is solved with the same
// factor, bordered by those few. Near the solution a handful of rounds replaces most of the pair
// steps, and ends at the solution itself. Far from it they wander: after a round without progress
// all stays as it was.
#include "mercer/svm_face.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/svm_border.hpp"
#include "mercer/svm_sums.hpp"

namespace mercer::svm {
namespace {

constexpr int kRounds = 12;
constexpr double kMany = 0.65;    // of the free variables: so many changes lead nowhere
constexpr double kFewer = 0.9;    // of the changes of the last round: more is no progress
constexpr double kJoining = 0.45;  // of the tolerance: by how much what joins violates at least
constexpr Size kMostBorders = 320;
constexpr Size kFewBorders = 64;
constexpr double kManyBorders = 0.3;  // of the factor's order: a new factor costs less than more
constexpr Size kNarrow = 600;         // free variables; with fewer, float saves no time

template <class Entry, class Real>
class Face {
 public:
  Face(Level<Entry>& level, double tol, const Worker& worker)
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

  bool run() {
    if (!factor()) return false;
    double most = kMany * static_cast<double>(system_.order());
    for (int round = 0; round < kRounds; ++round) {
      if (!solve() || !move() || worker_.stopped()) return false;
      const Size changes = change();
      if (changes == 0 && gap() <= tol_) return keep();
      if (static_cast<double>(changes) > most) return false;
      most = kFewer * static_cast<double>(std::max<Size>(changes, 2));
      if (!move()) return false;
      settle();
      if (crowded() && !factor()) return false;
    }
    return false;
  }

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

  double entry(Size s, Size t) const {
    return static_cast<double>(level_.row(s)[level_.column_of(t)]) +
           (s == t ? level_.shift[t] + ridge_ : 0.0);
  }

  // K between the free variables, and its factor; the only borders are the sums of groups.
  bool factor() {
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

  bool crowded() const {
    const double many = kManyBorders * static_cast<double>(system_.order());
    return system_.count() > kMostBorders ||
           (system_.count() > kFewBorders && static_cast<double>(system_.count()) > many);
  }

  void add(const Border& border) {
    std::vector<Real> column;
    column.reserve(base_.size());
    for (const Size t : base_) {
      if (border.place < 0)
        column.push_back(level_.group_of(t) == border.group ? Real(1) : Real(0));
      else if (border.added)
        column.push_back(static_cast<Real>(level_.row(border.place)[level_.column_of(t)]));
      else
        column.push_back(t == border.place ? Real(1) : Real(0));
    }
    system_.add(std::move(column));
    borders_.push_back(border);
  }

  // What two borders have in common beyond the factor's matrix.
  double corner(const Border& a, const Border& b) const {
    if (a.added && b.added) return entry(a.place, b.place);
    if (a.added && b.place < 0) return a.group == b.group ? 1.0 : 0.0;
    if (b.added && a.place < 0) return a.group == b.group ? 1.0 : 0.0;
    return 0.0;
  }

  double wanted(const Border& border) const {
    if (border.place < 0) return missing_[static_cast<std::size_t>(border.group)];
    return border.added ? slope(border.place) : 0.0;
  }

  // d, the way to the lowest point of the present face.
  bool solve() {
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
  bool balance() {
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
    std::fill(missing_.begin(), missing_.end(), 0.0);
    return true;
  }

  // b += d, and F with it; false when numbers overflow.
  bool move() {
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

  // Who is free from now on. What leaves, gets a d back to its bound. Returns how many changed.
  Size change() {
    find_offsets();
    Size changes = 0;
    level_.each([&](Size t) {
      d_[t] = 0.0;
      bool changed = false;
      if (is_free(t)) {
        d_[t] = std::clamp(b_[t], low_end(t), high_end(t)) - b_[t];
        changed = d_[t] != 0.0;
      } else {
        changed = joins(t);
      }
      if (!changed) return;
      ++changes;
      free_[static_cast<std::size_t>(t)] ^= 1;
      border(t);
    });
    return changes;
  }

  // The mean slope of the free variables.
  void find_offsets() {
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

  bool joins(Size t) {
    const double offset = offset_[group(t)], enough = kJoining * tol_;
    const bool rises = rising(t) > offset + enough, falls = falling(t) < offset - enough;
    if (rises) sign_[t] = b_[t] < 0.0 ? -1.0 : 1.0;
    if (falls) sign_[t] = b_[t] > 0.0 ? 1.0 : -1.0;
    return rises || falls;
  }

  // A variable has a border where the factor does not agree with whether it is free.
  void border(Size t) {
    const bool inside = index(t) >= 0, needed = inside != is_free(t);
    for (Border& known : borders_)
      if (known.place == t) {
        known.active = needed;
        return;
      }
    add({t, level_.group_of(t), !inside, needed});
  }

  // What left is on its bound exactly; the others have to make up for it.
  void settle() {
    level_.each([&](Size t) {
      if (d_[t] == 0.0) return;
      missing_[group(t)] -= d_[t];
      b_[t] = std::clamp(b_[t], low_end(t), high_end(t));
    });
  }

  double gap() const {
    std::vector<double> top(offset_.size(), -kNever), bottom(offset_.size(), kNever);
    level_.each([&](Size t) {
      top[group(t)] = std::max(top[group(t)], rising(t));
      bottom[group(t)] = std::min(bottom[group(t)], falling(t));
    });
    double widest = -kNever;
    for (std::size_t g = 0; g < top.size(); ++g) widest = std::max(widest, top[g] - bottom[g]);
    return widest;
  }

  bool keep() {
    level_.each([&](Size t) {
      level_.b[t] = b_[t];
      level_.f[t] = static_cast<Entry>(f_[t]);
      level_.refresh(t, b_[t]);
    });
    level_.trail.i = level_.trail.j = -1;
    return true;
  }

  Level<Entry>& level_;
  const Worker& worker_;
  double tol_;
  Buffer<double> doubles_;
  double *b_, *f_, *sign_, *d_, *sums_;
  std::vector<char> free_;
  std::vector<std::int32_t> index_;      // row of the factor of a place; -1: none
  std::vector<double> missing_, offset_;  // by group
  std::vector<Size> base_;               // places of the factor's rows
  double ridge_ = 0.0;
  Bordered<Real> system_;
  std::vector<Border> borders_;
};

}  // namespace

template <class Entry>
Size face_size(const Level<Entry>& level) {
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

template <class Entry>
bool finish_on_face(Level<Entry>& level, double tol, const Worker& worker) {
  if (face_size(level) < kNarrow) return Face<Entry, double>(level, tol, worker).run();
  return Face<Entry, Entry>(level, tol, worker).run();
}

template Size face_size(const Level<float>&);
template Size face_size(const Level<double>&);
template bool finish_on_face(Level<float>&, double, const Worker&);
template bool finish_on_face(Level<double>&, double, const Worker&);

}  // namespace mercer::svm
