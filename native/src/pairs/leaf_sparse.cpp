// Preparing sparse rows: copied as they are, with what each row adds to a statistic on its own.
#include <algorithm>
#include <cmath>

#include "pairs/leaf.hpp"

namespace mercer {
namespace {

template <class T>
double margin_term(Statistic statistic, T value) {
  const auto x = static_cast<double>(value);
  return statistic == kSqDist ? x * x : std::abs(x);
}

template <class T>
Buffer<T> margins(Statistic statistic, SparseInput<T> in) {
  Buffer<T> out(round_up(std::max<Size>(in.rows, 1), kTile));
  std::fill_n(out.data(), out.size(), T(0));
  for (Size r = 0; r < in.rows; ++r) {
    double sum = 0;
    for (Size e = in.entries.start[r]; e < in.entries.start[r + 1]; ++e) {
      sum += margin_term(statistic, in.entries.value[e]);
    }
    out[r] = static_cast<T>(sum);
  }
  return out;
}

template <class T>
SparseCopy<T> copy(SparseInput<T> in) {
  const Size entries = in.entries.start[in.rows];
  SparseCopy<T> out{Buffer<Size>(in.rows + 1), Buffer<std::int32_t>(entries), Buffer<T>(entries)};
  std::copy_n(in.entries.start, in.rows + 1, out.start.data());
  std::copy_n(in.entries.feature, entries, out.feature.data());
  std::copy_n(in.entries.value, entries, out.value.data());
  return out;
}

template <class T>
Size count_most_slots(SparseInput<T> y, Size features, int nr) {
  Size most = 0;
  for (Size j = 0; j < y.rows; j += nr) {
    most = std::max(most, y.entries.start[std::min(y.rows, j + nr)] - y.entries.start[j]);
  }
  return std::min(most, features);
}

// The factor in front of the sum over joint features; see Leaf.
int joint_factor(Statistic statistic) {
  switch (statistic) {
    case kSqDist: return -2;
    case kAbsDist: return 1;
    case kChiSq: return -1;
    default: return 0;
  }
}

// --- the statistic from the values themselves ------------------------------------------------

template <class T>
double term(Statistic statistic, T a, T b) {
  const double gap = static_cast<double>(a) - static_cast<double>(b);
  if (statistic == kSqDist) return gap * gap;
  if (statistic == kAbsDist) return std::abs(gap);
  const double total = static_cast<double>(a) + static_cast<double>(b);
  return gap * gap / (total > 0 ? total : 1.0);
}

// Walks the union of the features of two sparse rows.
template <class T>
double merge(Statistic statistic, SparseRows<T> a, Size x, SparseRows<T> b, Size y) {
  double sum = 0;
  Size i = a.start[x], j = b.start[y];
  const Size i_end = a.start[x + 1], j_end = b.start[y + 1];
  while (i < i_end || j < j_end) {
    const bool left = j >= j_end || (i < i_end && a.feature[i] <= b.feature[j]);
    const bool right = i >= i_end || (j < j_end && b.feature[j] <= a.feature[i]);
    sum += term<T>(statistic, left ? a.value[i] : T(0), right ? b.value[j] : T(0));
    i += left;
    j += right;
  }
  return sum;
}

}  // namespace

template <class T>
T Leaf<T>::direct(Size x, Size y, int nr) const {
  if (sparse) return static_cast<T>(merge(statistic, x_sparse.view(), x, y_sparse().view(), y));
  const T* row = x_rows.data() + x * features;
  const T* column = y_panels.data() + (y / nr) * features * nr + y % nr;
  double sum = 0;
  for (Size k = 0; k < features; ++k) sum += term<T>(statistic, row[k], column[k * nr]);
  return static_cast<T>(sum);
}

template <class T>
Leaf<T> bind_sparse(Statistic statistic, int degree, Size features, SparseInput<T> x,
                    const SparseInput<T>* y, const Tiles<T>& tiles) {
  Leaf<T> leaf;
  leaf.statistic = leaf.kernel = statistic;
  leaf.degree = degree;
  leaf.features = features;
  leaf.sparse = true;
  leaf.factor = static_cast<T>(joint_factor(statistic));
  leaf.x_sparse = copy(x);
  if (y) leaf.y_sparse_own = std::make_unique<SparseCopy<T>>(copy(*y));
  const SparseInput<T> columns = y ? *y : x;
  leaf.most_slots = count_most_slots(columns, features, tiles.nr);
  if (leaf.factor != 0) {
    leaf.x_margin = margins(statistic, x);
    leaf.y_margin = margins(statistic, columns);
  }
  return leaf;
}

#define MERCER_BIND(T)                                                                     \
  template struct Leaf<T>;                                                                 \
  template Leaf<T> bind_sparse(Statistic, int, Size, SparseInput<T>, const SparseInput<T>*, \
                               const Tiles<T>&)

MERCER_BIND(float);
MERCER_BIND(double);

}  // namespace mercer
