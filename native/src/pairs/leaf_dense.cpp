// Preparing dense rows, once per binding, so that the tile loops only stream packed numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "pairs/leaf_chunks.hpp"
#include "pairs/leaf.hpp"

namespace mercer {
namespace {

constexpr Size kDirectLimit = 16;  // up to this many features differences cost no more
constexpr Size kMedianRows = 63;   // rows whose medians are taken
constexpr double kMoved = 4;       // squared lengths about means, over those about medians

// Column means in float64, summed in a fixed order; a column without a finite mean is not moved.
template <class S>
std::vector<double> column_means(DenseInput<S> in, Work work) {
  const Size d = in.features, parts = chunks(in.rows);
  std::vector<double> sums(static_cast<std::size_t>(d * parts));
  for_chunks(in.rows, work, [&](Size chunk, Size begin, Size end) {
    double* sum = sums.data() + chunk * d;
    for (Size r = begin; r < end; ++r) {
      const S* row = in.values + r * d;
      for (Size k = 0; k < d; ++k) sum[k] += static_cast<double>(row[k]);
    }
  });
  std::vector<double> means(static_cast<std::size_t>(d));
  for (std::size_t i = 0; i < sums.size(); ++i) means[i % means.size()] += sums[i];
  for (double& mean : means) {
    mean /= static_cast<double>(std::max<Size>(in.rows, 1));
    if (!std::isfinite(mean)) mean = 0;
  }
  return means;
}

// Rows by which the middle of all is found: at equal steps, the same for any threads.
template <class S>
std::vector<const S*> some_rows(DenseInput<S> in) {
  const Size count = std::min(in.rows, kMedianRows);
  std::vector<const S*> rows;
  for (Size i = 0; i < count; ++i) rows.push_back(in.values + (i * in.rows / count) * in.features);
  return rows;
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class S>
std::vector<double> column_medians(const std::vector<const S*>& rows, Size features) {
  std::vector<double> medians(static_cast<std::size_t>(features)), entries;
  for (Size k = 0; k < features; ++k) {
    entries.clear();
    for (const S* row : rows) {
      if (std::isfinite(row[k])) entries.push_back(static_cast<double>(row[k]));
    }
    medians[static_cast<std::size_t>(k)] = median(entries);
  }
  return medians;
}

// The median of squared distances of rows from a point.
template <class S>
double usual_length(const std::vector<const S*>& rows, const std::vector<double>& from) {
  std::vector<double> lengths;
  for (const S* row : rows) {
    double sum = 0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      const double gap = static_cast<double>(row[k]) - from[k];
      sum += gap * gap;
    }
    if (!std::isnan(sum)) lengths.push_back(sum);
  }
  return median(lengths);
}

// What rows are compared about. Distances do not depend on it, their rounding does. Differences of
// float64 entries as they are round least. Products round the less, the shorter rows are: means
// serve, unless a few rows far away moved them from all others, which medians do not follow. So do
// entries that are rounded to float32.
template <class T, class S>
std::vector<double> origin(const Leaf<T>& leaf, DenseInput<S> columns, Work work) {
  if (leaf.statistic != kSqDist && leaf.statistic != kAbsDist) return {};
  if (sizeof(T) == 8 && leaf.factor == 0) return {};
  std::vector<double> means = column_means(columns, work);
  const std::vector<const S*> rows = some_rows(columns);
  std::vector<double> medians = column_medians(rows, columns.features);
  const bool moved = kMoved * usual_length(rows, medians) < usual_length(rows, means);
  return moved ? medians : means;
}

// Four sums side by side, which vector registers hold.
template <class T>
double square_sum(const T* row, Size size) {
  const auto square = [row](Size k) {
    return static_cast<double>(row[k]) * static_cast<double>(row[k]);
  };
  double sums[4] = {};
  Size k = 0;
  for (; k + 4 <= size; k += 4) {
    for (Size l = 0; l < 4; ++l) sums[l] += square(k + l);
  }
  for (; k < size; ++k) sums[0] += square(k);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Shifts before rounding: a large common offset must not eat the digits of the working type.
template <class T, class S>
void copy_row(const S* in, const double* shift, Size size, T* out) {
  if (shift == nullptr) {
    for (Size k = 0; k < size; ++k) out[k] = static_cast<T>(in[k]);
  } else {
    for (Size k = 0; k < size; ++k) {
      out[k] = static_cast<T>(static_cast<double>(in[k]) - shift[k]);
    }
  }
}

template <class T, class S>
void prepare_x(Leaf<T>& leaf, DenseInput<S> x, const double* shift, Work work) {
  const Size d = x.features;
  const bool margins = leaf.factor != 0;
  leaf.x_rows = Buffer<T>(x.rows * d);
  if (margins) leaf.x_margin = padded_zeros<T>(x.rows);
  for_chunks(x.rows, work, [&](Size, Size begin, Size end) {
    for (Size r = begin; r < end; ++r) {
      T* row = leaf.x_rows.data() + r * d;
      copy_row(x.values + r * d, shift, d, row);
      if (margins) leaf.x_margin[r] = static_cast<T>(square_sum(row, d));
    }
  });
}

// One panel: up to nr rows, turned over into [feature][nr].
template <class T>
void pack_panel(const T* rows, Size count, Size features, int nr, T* panel) {
  for (Size k = 0; k < features; ++k) {
    for (Size j = 0; j < nr; ++j) panel[k * nr + j] = j < count ? rows[j * features + k] : T(0);
  }
}

template <class T, class S>
void prepare_y(Leaf<T>& leaf, DenseInput<S> y, const double* shift, int nr, Work work) {
  const Size d = y.features, panels = round_up(y.rows, kTile) / nr;
  const bool margins = leaf.factor != 0;
  leaf.y_panels = Buffer<T>(panels * d * nr);
  if (margins) leaf.y_margin = padded_zeros<T>(y.rows);
  const auto task = [&](Size panel, int) {
    const Size begin = panel * nr, count = std::clamp<Size>(y.rows - begin, 0, nr);
    std::vector<T> rows(static_cast<std::size_t>(count * d));
    for (Size j = 0; j < count; ++j) {
      T* row = rows.data() + j * d;
      copy_row(y.values + (begin + j) * d, shift, d, row);
      if (margins) leaf.y_margin[begin + j] = static_cast<T>(square_sum(row, d));
    }
    pack_panel(rows.data(), count, d, nr, leaf.y_panels.data() + panel * d * nr);
  };
  parallel_for(panels, task, threads_for(y.rows, work), *work.poll);
}

}  // namespace

template <class T, class S>
Leaf<T> bind_dense(Statistic statistic, int degree, DenseInput<S> x, const DenseInput<S>* y,
                   const Tiles<T>& tiles, Work work) {
  Leaf<T> leaf;
  leaf.statistic = leaf.kernel = statistic;
  leaf.degree = degree;
  leaf.features = x.features;
  if constexpr (sizeof(T) == 4) {
    if (bind_bytes(leaf, x, y, tiles, work)) return leaf;
  }
  if (statistic == kSqDist && x.features > kDirectLimit) {
    leaf.kernel = kDot;
    leaf.factor = -2;
  }
  const DenseInput<S> columns = y ? *y : x;
  const std::vector<double> moved = origin(leaf, columns, work);
  const double* shift = moved.empty() ? nullptr : moved.data();
  prepare_x(leaf, x, shift, work);
  prepare_y(leaf, columns, shift, tiles.nr, work);
  return leaf;
}

#define MERCER_BIND(T, S)                                                                \
  template Leaf<T> bind_dense(Statistic, int, DenseInput<S>, const DenseInput<S>*, \
                              const Tiles<T>&, Work)

MERCER_BIND(float, float);
MERCER_BIND(float, double);
MERCER_BIND(double, float);
MERCER_BIND(double, double);

}  // namespace mercer
