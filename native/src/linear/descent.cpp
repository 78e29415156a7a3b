// Dual coordinate descent on rows of features, with sums kept by the method of multipliers.
//
// One variable at a time is set to its optimum given all others, in random order; w = sum b_i x_i is
// kept along. Variables that are firmly at a bound (or at their kink) are left out until all others
// are done. A fixed sum of variables becomes rho/2 (sum - total)^2 plus a multiplier, which moves
// once the descent knows the sum better than the sum is off.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "linear/linear.hpp"

namespace mercer::linear {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Size kLook = 2048;  // steps between two looks at the signals
constexpr double kSteep = 10.0;  // times the least steep penalty of a sum
constexpr Size kAhead = 4;    // rows that are asked for before their turn

// A small generator of our own: the same order on every machine.
class Dice {
 public:
  Size below(Size n) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<Size>((static_cast<unsigned __int128>(z) * static_cast<std::uint64_t>(n)) >>
                             64);
  }

 private:
  std::uint64_t state_ = 1;
};

double dot(const DenseRows& rows, Size i, const double* w) {
  const double* x = rows.row(i);
  double part[4] = {};
  Size k = 0;
  for (; k + 4 <= rows.width; k += 4)
    for (int j = 0; j < 4; ++j) part[j] += x[k + j] * w[k + j];
  double total = (part[0] + part[1]) + (part[2] + part[3]);
  for (; k < rows.width; ++k) total += x[k] * w[k];
  return total;
}

double dot(const SparseRows& rows, Size i, const double* w) {
  const Size row = rows.number(i), end = rows.begin[row + 1];
  double a = 0.0, b = 0.0;
  Size k = rows.begin[row];
  for (; k + 2 <= end; k += 2) {
    a += rows.values[k] * w[rows.columns[k]];
    b += rows.values[k + 1] * w[rows.columns[k + 1]];
  }
  if (k < end) a += rows.values[k] * w[rows.columns[k]];
  return a + b;
}

void add(const DenseRows& rows, Size i, double scale, double* w) {
  const double* x = rows.row(i);
  for (Size k = 0; k < rows.width; ++k) w[k] += scale * x[k];
}

void add(const SparseRows& rows, Size i, double scale, double* w) {
  const Size row = rows.number(i), end = rows.begin[row + 1];
  for (Size k = rows.begin[row]; k < end; ++k) w[rows.columns[k]] += scale * rows.values[k];
}

double squared(const DenseRows& rows, Size i) { return dot(rows, i, rows.row(i)); }

double squared(const SparseRows& rows, Size i) {
  const Size row = rows.number(i);
  double total = 0.0;
  for (Size k = rows.begin[row]; k < rows.begin[row + 1]; ++k)
    total += rows.values[k] * rows.values[k];
  return total;
}

void ask_for(const DenseRows& rows, Size i) {
  const double* x = rows.row(i);
  for (Size k = 0; k < std::min<Size>(rows.width, 64); k += 8) __builtin_prefetch(x + k);
}

void ask_for(const SparseRows& rows, Size i) {
  const Size begin = rows.begin[rows.number(i)], end = rows.begin[rows.number(i) + 1];
  const Size last = std::min(end, begin + 256);
  for (Size k = begin; k < last; k += 8) __builtin_prefetch(rows.values + k);
  for (Size k = begin; k < last; k += 16) __builtin_prefetch(rows.columns + k);
}

template <class Rows>
class Walk {
 public:
  Walk(const Rows& rows, const Box& box, double* b, double* w, double* offsets)
      : rows_(rows), box_(box), b_(b), w_(w), offsets_(offsets), curvature_(rows.count),
        active_(rows.count), sums_(box.groups), size_(rows.count) {
    std::iota(active_.begin(), active_.end(), Size{0});
    double mean = 0.0;
    for (Size i = 0; i < rows.count; ++i) mean += curvature_[i] = squared(rows, i);
    rho_ = std::max(mean / std::max<Size>(1, rows.count), kSteep * box_slope());
    if (!(rho_ > 0.0)) rho_ = 1.0;  // nothing says how large a variable is
    for (Size i = 0; i < rows.count; ++i) {
      if (box.shift) curvature_[i] += box.shift[i];
      if (box.group[i] >= 0) curvature_[i] += rho_;
    }
    refresh();
  }

  // w and the sums anew from b: free of what updates lost.
  void refresh() {
    std::fill_n(w_, rows_.width, 0.0);
    for (Size i = 0; i < rows_.count; ++i)
      if (b_[i] != 0.0) add(rows_, i, b_[i], w_);
    for (Size g = 0; g < box_.groups; ++g) sums_[g] = -box_.totals[g];
    for (Size i = 0; i < rows_.count; ++i)
      if (box_.group[i] >= 0) sums_[box_.group[i]] += b_[i];
  }

  // One pass over the active variables; gives the largest rise and the largest fall it met.
  double epoch(double firm, Poll& poll) {
    double rise = 0.0, fall = 0.0;
    for (Size s = 0; s < size_; ++s) {
      const Size j = s + dice_.below(size_ - s);
      std::swap(active_[s], active_[j]);
    }
    for (Size s = 0; s < size_; ++s) {
      if (s % kLook == 0) {
        poll.check();
        if (poll.stopped()) return kInfinity;
      }
      if (s + kAhead < size_) ask_for(rows_, active_[s + kAhead]);
      const Size i = active_[s];
      const double G = force(i), kink = box_.kink ? box_.kink[i] : 0.0, b = b_[i];
      const double up = b < box_.upper[i] ? G + (b < 0.0 ? kink : -kink) : -kInfinity;
      const double down = b > box_.lower[i] ? G + (b > 0.0 ? -kink : kink) : kInfinity;
      if (up < -firm && down > firm) {  // nothing near to move for
        std::swap(active_[s], active_[--size_]);
        --s;
        continue;
      }
      rise = std::max(rise, up);
      fall = std::max(fall, -down);
      if (up > 0.0 || down < 0.0) move(i, G, kink);
    }
    return rise + fall;
  }

  void all_active() { size_ = rows_.count; }
  bool is_whole() const { return size_ == rows_.count; }

  double astray() const {
    double worst = 0.0;
    for (double sum : sums_) worst = std::max(worst, rho_ * std::abs(sum));
    return worst;
  }

  void move_offsets() {
    for (Size g = 0; g < box_.groups; ++g) offsets_[g] += rho_ * sums_[g];
  }

 private:
  // How far forces lie apart, over how far the sums can go: by less a sum is not felt.
  double box_slope() const {
    double low = kInfinity, high = -kInfinity, width = 0.0;
    for (Size i = 0; i < rows_.count; ++i) {
      if (box_.group[i] < 0) continue;
      low = std::min(low, box_.linear[i]);
      high = std::max(high, box_.linear[i]);
    }
    if (!(high > low)) return 0.0;
    for (Size i = 0; i < rows_.count; ++i) {
      if (box_.group[i] < 0) continue;
      const double shift = box_.shift ? box_.shift[i] : 0.0;
      const double reach = shift > 0.0 ? (high - low) / shift : kInfinity;
      width += std::min(box_.upper[i] - box_.lower[i], reach);
    }
    return width > 0.0 ? (high - low) / width : 0.0;
  }

  double force(Size i) const {
    double F = box_.linear[i] - dot(rows_, i, w_);
    if (box_.shift) F -= box_.shift[i] * b_[i];
    const int g = box_.group[i];
    return g < 0 ? F : F - offsets_[g] - rho_ * sums_[g];
  }

  // Where the variable would like to be. A row of zeros bends nothing: it goes as far as it may.
  double target(Size i, double G, double kink) const {
    const double q = curvature_[i];
    if (!(q > 0.0)) return G > kink ? kInfinity : G < -kink ? -kInfinity : b_[i];
    const double z = b_[i] + G / q, soft = kink / q;
    return z > soft ? z - soft : z < -soft ? z + soft : (soft > 0.0 ? 0.0 : z);
  }

  void move(Size i, double G, double kink) {
    double z = target(i, G, kink);
    z = std::min(std::max(z, box_.lower[i]), box_.upper[i]);
    const double step = z - b_[i];
    if (step == 0.0 || !std::isfinite(step)) return;
    b_[i] = z;
    add(rows_, i, step, w_);
    if (box_.group[i] >= 0) sums_[box_.group[i]] += step;
  }

  const Rows& rows_;
  const Box& box_;
  double* b_;
  double* w_;
  double* offsets_;
  std::vector<double> curvature_;
  std::vector<Size> active_;
  std::vector<double> sums_;  // less what they should be
  Size size_;
  double rho_ = 1.0;
  Dice dice_;
};

constexpr std::int64_t kLookAround = 50;  // epochs

}  // namespace

template <class Rows>
void descend(const Rows& rows, const Box& box, double* b, double* weights, double* offsets,
             double tol, std::int64_t max_epochs, Poll& poll, Descent& sofar) {
  Walk<Rows> walk(rows, box, b, weights, offsets);
  double firm = kInfinity;
  while (sofar.epochs < max_epochs) {
    const bool whole = walk.is_whole();
    const double range = walk.epoch(firm, poll);
    if (poll.stopped()) break;
    ++sofar.epochs;
    const double astray = walk.astray();
    if (whole) sofar.violation = range;
    sofar.astray = astray;
    // those left out are looked at now and then in any case: what is known must not grow old
    if (!whole && (range <= tol || sofar.epochs % kLookAround == 0)) {
      walk.all_active();
      firm = kInfinity;
      continue;
    }
    if (range <= tol && astray <= 0.1 * tol) break;
    firm = range > 0.0 ? range : kInfinity;
    if (range <= std::max(tol, 3.0 * astray)) {
      walk.move_offsets();
      firm = std::max(firm, 4.0 * astray);
    }
  }
  walk.refresh();
}

template void descend(const DenseRows&, const Box&, double*, double*, double*, double,
                      std::int64_t, Poll&, Descent&);
template void descend(const SparseRows&, const Box&, double*, double*, double*, double,
                      std::int64_t, Poll&, Descent&);

}  // namespace mercer::linear
