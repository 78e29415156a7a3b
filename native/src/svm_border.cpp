// The factor, L^-1 times the borders, and the small system that these leave.
#include "mercer/svm_border.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/algebra_cholesky.hpp"

namespace mercer::svm {
namespace {

using algebra::kStrip;

// x <- a^-1 x by elimination with row exchanges, a of the order of x; false when a is singular.
bool eliminate(std::vector<double>& a, std::vector<double>& x) {
  const Size n = static_cast<Size>(x.size());
  const auto row = [&](Size i) { return a.data() + i * n; };
  const auto subtract = passes<double>().subtract;
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
    const double sum = passes<double>().project(row(k) + k + 1, x.data() + k + 1, n - k - 1);
    x[static_cast<std::size_t>(k)] = (x[static_cast<std::size_t>(k)] - sum) / row(k)[k];
  }
  return true;
}

}  // namespace

template <class Real>
Real* Bordered<Real>::begin(Size n) {
  n_ = n;
  pending_.clear(), at_.clear(), strips_.clear(), products_.clear();
  solved_ = 0;
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
void Bordered<Real>::take_in() {
  for (std::size_t first = 0; first < pending_.size(); first += kStrip) {
    const std::size_t some = std::min<std::size_t>(kStrip, pending_.size() - first);
    Buffer<Real> strip(n_ * kStrip);
    std::fill_n(strip.data(), n_ * kStrip, Real(0));
    for (std::size_t c = 0; c < some; ++c) {
      at_.push_back(static_cast<Size>(strips_.size()) * kStrip + static_cast<Size>(c));
      for (Size i = 0; i < n_; ++i)
        strip[i * kStrip + static_cast<Size>(c)] =
            pending_[first + c][static_cast<std::size_t>(i)];
    }
    algebra::solve_lower(l_.data(), n_, n_, strip.data());
    strips_.push_back(std::move(strip));
    grow_products();
  }
  solved_ += pending_.size();
  pending_.clear();
}

template <class Real>
void Bordered<Real>::grow_products() {
  const Real* last = strips_.back().data();
  for (const Buffer<Real>& strip : strips_) {
    std::vector<Real> square(kStrip * kStrip);
    algebra::multiply(algebra::Into::assign, algebra::Shape::full, kStrip, n_, {last, 1, kStrip},
                      strip.data(), kStrip, square.data(), kStrip);
    products_.push_back(std::move(square));
  }
}

template <class Real>
double Bordered<Real>::product(Size a, Size b) const {
  if (a < b) std::swap(a, b);
  const Size s = a / kStrip, t = b / kStrip;
  const auto& square = products_[static_cast<std::size_t>(s * (s + 1) / 2 + t)];
  return static_cast<double>(square[static_cast<std::size_t>(a % kStrip * kStrip + b % kStrip)]);
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

template <class Real>
bool Bordered<Real>::solve(const std::vector<double>& right, const std::vector<Size>& used,
                           std::vector<double>& corner, const std::vector<double>& wanted,
                           std::vector<double>& x, std::vector<double>& z) {
  take_in();
  x = right;
  forward(x);
  std::vector<double> factors(strips_.size() * kStrip, 0.0);  // first minus (L^-1 B)' x
  for (std::size_t s = 0; s < strips_.size(); ++s)
    for (Size i = 0; i < n_; ++i)
      pass_.subtract(factors.data() + s * kStrip, x[static_cast<std::size_t>(i)],
                     strips_[s].data() + i * kStrip, kStrip);
  const Size m = static_cast<Size>(used.size());
  const auto place = [&](Size i) {
    return at_[static_cast<std::size_t>(used[static_cast<std::size_t>(i)])];
  };
  z = wanted;
  for (Size i = 0; i < m; ++i) {
    z[static_cast<std::size_t>(i)] += factors[static_cast<std::size_t>(place(i))];
    for (Size j = 0; j < m; ++j)
      corner[static_cast<std::size_t>(i * m + j)] -= product(place(i), place(j));
  }
  if (!eliminate(corner, z)) return false;
  std::fill(factors.begin(), factors.end(), 0.0);  // then z, by place
  for (Size i = 0; i < m; ++i)
    factors[static_cast<std::size_t>(place(i))] = z[static_cast<std::size_t>(i)];
  for (std::size_t s = 0; s < strips_.size(); ++s)
    for (Size i = 0; i < n_; ++i)
      x[static_cast<std::size_t>(i)] -=
          pass_.project(strips_[s].data() + i * kStrip, factors.data() + s * kStrip, kStrip);
  backward(x);
  return true;
}

template class Bordered<float>;
template class Bordered<double>;

}  // namespace mercer::svm
