// Loops over rows of one instruction set. CMake compiles this file once per MERCER_VARIANT.
#include "partition/passes.hpp"

#include "runtime/vector.hpp"

namespace mercer::partition {
namespace {

template <class Entry>
void add(const Entry* __restrict row, double w, Size count, double* __restrict sum) {
  for (Size t = 0; t < count; ++t) sum[t] += w * static_cast<double>(row[t]);
}

template <class Entry>
void shift(const Entry* __restrict row, double w, Size count, double* __restrict from,
           double* __restrict to) {
  for (Size t = 0; t < count; ++t) {
    const double part = w * static_cast<double>(row[t]);
    from[t] -= part;
    to[t] += part;
  }
}

void nearer(const double* __restrict sums, double slope, double level, Label c, Size count,
            double* __restrict best, Label* __restrict next) {
  for (Size t = 0; t < count; ++t) {
    const double d = slope * sums[t] + level;
    const bool lower = d < best[t];
    best[t] = lower ? d : best[t];
    next[t] = lower ? c : next[t];
  }
}

void joining(const double* __restrict sums, double slope, double level, double weight,
             const double* __restrict w, const double* __restrict diagonal,
             const Label* __restrict labels, Label c, Size count, double* __restrict best) {
  for (Size t = 0; t < count; ++t) {
    const double d = weight / (weight + w[t]) * (diagonal[t] + slope * sums[t] + level);
    const double known = best[t];
    best[t] = (labels[t] != c) & (d < known) ? d : known;
  }
}

template <class Entry>
constexpr Passes<Entry> kPasses = {add<Entry>, shift<Entry>};
constexpr SumPasses kSums = {nearer, joining};

constexpr int kLanes = static_cast<int>(kPadding);  // whatever the registers: sums are the same
using Wide = Vec<double, kLanes>;

MERCER_INLINE Wide load(const double* from) { return mercer::load<double, kLanes>(from); }
MERCER_INLINE void store(double* to, Wide v) { mercer::store<double, kLanes>(to, v); }

#if defined(__AVX512F__)
constexpr int kMost = 4;  // vectors of centres at a time: 4 x 4 sums stay in registers
#else
constexpr int kMost = 1;
#endif

template <int vectors, int rows>
inline void block(const double* const* x, Size width, const double* table, Size padded,
                  double* out) {
  Wide sum[rows][vectors] = {};
  for (Size t = 0; t < width; ++t, table += padded) {
    Wide c[vectors];
    for (int v = 0; v < vectors; ++v) c[v] = load(table + v * kLanes);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) sum[r][v] += x[r][t] * c[v];
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) store(out + r * padded + v * kLanes, sum[r][v]);
}

template <int rows>
void strips(const double* const* x, Size width, const double* table, Size padded, double* out) {
  Size at = 0;
  for (; at + kMost * kLanes <= padded; at += kMost * kLanes)
    block<kMost, rows>(x, width, table + at, padded, out + at);
#if defined(__AVX512F__)
  if (at + 3 * kLanes == padded)
    return block<3, rows>(x, width, table + at, padded, out + at);
  for (; at + 2 * kLanes <= padded; at += 2 * kLanes)
    block<2, rows>(x, width, table + at, padded, out + at);
#endif
  for (; at < padded; at += kLanes) block<1, rows>(x, width, table + at, padded, out + at);
}

void products(const double* const* rows, int count, Size width, const double* table, Size padded,
              double* out) {
  switch (count) {
    case 4:
      return strips<4>(rows, width, table, padded, out);
    case 3:
      return strips<3>(rows, width, table, padded, out);
    case 2:
      return strips<2>(rows, width, table, padded, out);
    default:
      return strips<1>(rows, width, table, padded, out);
  }
}

void sparse_product(const std::int32_t* columns, const double* values, Size filled,
                    const double* table, Size padded, double* out) {
  for (Size at = 0; at < padded; at += kLanes) {
    Wide sum = {};
    for (Size t = 0; t < filled; ++t) sum += values[t] * load(table + columns[t] * padded + at);
    store(out + at, sum);
  }
}

double dot(const double* a, const double* b, Size width) {
  Wide sum = {};
  Size t = 0;
  for (; t + kLanes <= width; t += kLanes) sum += load(a + t) * load(b + t);
  double total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; t < width; ++t) total += a[t] * b[t];
  return total;
}

constexpr FeaturePasses kFeatures = {products, sparse_product, dot};

}  // namespace
}  // namespace mercer::partition

namespace mercer {

template <>
const partition::Passes<float>& MERCER_VARIANT::table() {
  return partition::kPasses<float>;
}
template <>
const partition::Passes<double>& MERCER_VARIANT::table() {
  return partition::kPasses<double>;
}
template <>
const partition::SumPasses& MERCER_VARIANT::table() {
  return partition::kSums;
}
template <>
const partition::FeaturePasses& MERCER_VARIANT::table() {
  return partition::kFeatures;
}

}  // namespace mercer
