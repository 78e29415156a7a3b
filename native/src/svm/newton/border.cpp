// The factor, L^-1 times the borders, and the small system that these leave.
#include "svm/newton/border.hpp"

#include <algorithm>
#include <cmath>

#include "algebra/cholesky.hpp"

namespace mercer::svm {
namespace {

using algebra::kStrip;

constexpr std::size_t kFew = 6;  // columns; more are solved together

// x <- a^-1 x by elimination with row exchanges, a of the order of x; false when a is singular.
bool eliminate(std::vector<double>& a, std::vector<double>& x) {
  const Size n = static_cast<Size>(x.size());
  const auto row = [&](Size i) { return a.data() + i * n; };
  const auto subtract = table<Passes<double>>().subtract;
  for (Size k = 0; k < n; ++k) {
    Size best = k;
    for (Size i = k + 1; i < n; ++i)
      if (std::abs(row(i)[k]) > std::abs(row(best)[k])) best = i;
    const double pivot = row(best)[k];
    if (!(std::abs(pivot) > 0.0) || !std::isfinite(pivot)) return false;
    if (best != k) {
      std::swap_ranges(row(k), row(k) + n, row(best));
      std::swap(x[static_cast<std::size_t>(k)], x[static_cast<std::size_t>(best)]);
    }
    for (Size i = k + 1; i < n; ++i) {
      const double factor = row(i)[k] / pivot;
      subtract(row(i) + k + 1, factor, row(k) + k + 1, n - k - 1);
      x[static_cast<std::size_t>(i)] -= factor * x[static_cast<std::size_t>(k)];
    }
  }
  for (Size k = n - 1; k >= 0; --k) {
    const double sum = table<Passes<double>>().project(row(k) + k + 1, x.data() + k + 1, n - k - 1);
    x[static_cast<std::size_t>(k)] = (x[static_cast<std::size_t>(k)] - sum) / row(k)[k];
  }
  return true;
}

}  // namespace

template <class Real>
Real* Bordered<Real>::begin(Size n) {
  n_ = n;
  next_ = 0;
  pending_.clear(), at_.clear(), strips_.clear(), products_.clear();
  if (l_.size() < n * n) {
    // few different sizes, so that the next factor finds pages of this one again
    Size room = 1 << 16;
    while (room < n * n) room += room / 4;
    l_ = Buffer<Real>();
    l_ = Buffer<Real>(room);
  }
  return l_.data();
}

template <class Real>
bool Bordered<Real>::factor(const Worker& worker) {
  const bool together = worker.caller() && worker.threads > 1;
  const Size failed = together
                          ? algebra::cholesky(l_.data(), n_, n_, worker.threads, worker.poll)
                          : algebra::cholesky_serial(l_.data(), n_, n_);
  return failed == 0 && !worker.stopped();
}

template <class Real>
void Bordered<Real>::begin_strip() {
  next_ = static_cast<Size>(strips_.size()) * kStrip;
  strips_.emplace_back(n_ * kStrip);
  std::fill_n(strips_.back().data(), n_ * kStrip, Real(0));
  const std::size_t s = strips_.size();
  products_.resize(s * (s + 1) / 2 * kStrip * kStrip, Real(0));
}

template <class Real>
Real* Bordered<Real>::square(Size s, Size t) {
  return products_.data() + (s * (s + 1) / 2 + t) * kStrip * kStrip;
}

template <class Real>
double Bordered<Real>::product(Size a, Size b) const {
  if (a < b) std::swap(a, b);
  const Size s = a / kStrip, t = b / kStrip;
  const Size at = (s * (s + 1) / 2 + t) * kStrip * kStrip + a % kStrip * kStrip + b % kStrip;
  return static_cast<double>(products_[static_cast<std::size_t>(at)]);
}

template <class Real>
void Bordered<Real>::take_in() {
  if (pending_.size() <= kFew) {
    for (auto& column : pending_) take_in_one(std::move(column));
  } else {
    for (std::size_t first = 0; first < pending_.size(); first += kStrip)
      take_in_strip(first, std::min<std::size_t>(kStrip, pending_.size() - first));
  }
  pending_.clear();
}

template <class Real>
void Bordered<Real>::take_in_one(std::vector<double> column) {
  if (next_ == static_cast<Size>(strips_.size()) * kStrip) begin_strip();
  forward(column);
  const Size s = next_ / kStrip, lane = next_ % kStrip;
  Real* to = strips_[static_cast<std::size_t>(s)].data() + lane;
  for (Size i = 0; i < n_; ++i, to += kStrip)
    *to = static_cast<Real>(column[static_cast<std::size_t>(i)]);
  std::vector<double> sums;
  project(column, sums);
  for (Size b = 0; b <= next_; ++b)
    square(s, b / kStrip)[lane * kStrip + b % kStrip] =
        static_cast<Real>(sums[static_cast<std::size_t>(b)]);
  at_.push_back(next_++);
}

template <class Real>
void Bordered<Real>::take_in_strip(std::size_t first, std::size_t count) {
  begin_strip();
  const Size s = static_cast<Size>(strips_.size()) - 1;
  Real* strip = strips_.back().data();
  for (std::size_t c = 0; c < count; ++c) {
    Real* to = strip + c;
    for (const double value : pending_[first + c]) {
      *to = static_cast<Real>(value);
      to += kStrip;
    }
    at_.push_back(next_++);
  }
  algebra::solve_lower(l_.data(), n_, n_, strip);
  for (Size t = 0; t <= s; ++t)
    algebra::multiply(algebra::Into::assign, algebra::Shape::full, kStrip, n_, {strip, 1, kStrip},
                      strips_[static_cast<std::size_t>(t)].data(), kStrip, square(s, t), kStrip);
}

template <class Real>
void Bordered<Real>::forward(std::vector<double>& x) const {
  for (Size i = 0; i < n_; ++i) {
    const Real* row = l_.data() + i * n_;
    double& own = x[static_cast<std::size_t>(i)];
    own = (own - pass_.project(row, x.data(), i)) / static_cast<double>(row[i]);
  }
}

template <class Real>
void Bordered<Real>::backward(std::vector<double>& x) const {
  for (Size i = n_ - 1; i >= 0; --i) {
    const Real* row = l_.data() + i * n_;
    double& own = x[static_cast<std::size_t>(i)];
    own /= static_cast<double>(row[i]);
    pass_.subtract(x.data(), own, row, i);
  }
}

// (L^-1 B)' x, by places.
template <class Real>
void Bordered<Real>::project(const std::vector<double>& x, std::vector<double>& sums) const {
  sums.assign(strips_.size() * kStrip, 0.0);
  for (std::size_t s = 0; s < strips_.size(); ++s)
    for (Size i = 0; i < n_; ++i)
      pass_.subtract(sums.data() + s * kStrip, -x[static_cast<std::size_t>(i)],
                     strips_[s].data() + i * kStrip, kStrip);
}

template <class Real>
bool Bordered<Real>::solve(const std::vector<double>& right, const std::vector<Size>& used,
                           std::vector<double>& corner, const std::vector<double>& wanted,
                           std::vector<double>& x, std::vector<double>& z) {
  take_in();
  x = right;
  forward(x);
  std::vector<double> sums;
  project(x, sums);
  const Size m = static_cast<Size>(used.size());
  const auto place = [&](Size i) {
    return at_[static_cast<std::size_t>(used[static_cast<std::size_t>(i)])];
  };
  z = wanted;
  for (Size i = 0; i < m; ++i) {
    z[static_cast<std::size_t>(i)] -= sums[static_cast<std::size_t>(place(i))];
    for (Size j = 0; j < m; ++j)
      corner[static_cast<std::size_t>(i * m + j)] -= product(place(i), place(j));
  }
  if (!eliminate(corner, z)) return false;
  std::fill(sums.begin(), sums.end(), 0.0);  // z, by places
  for (Size i = 0; i < m; ++i)
    sums[static_cast<std::size_t>(place(i))] = z[static_cast<std::size_t>(i)];
  for (std::size_t s = 0; s < strips_.size(); ++s)
    for (Size i = 0; i < n_; ++i)
      x[static_cast<std::size_t>(i)] -=
          pass_.project(strips_[s].data() + i * kStrip, sums.data() + s * kStrip, kStrip);
  backward(x);
  return true;
}

template class Bordered<float>;
template class Bordered<double>;

}  // namespace mercer::svm
