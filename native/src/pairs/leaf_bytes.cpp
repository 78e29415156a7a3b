// Rows of bytes: whole numbers 0 .. 255 times one step, as in images, small counts and 0/1 data.
//
// With rows u, v of bytes and w = v - 128, which is what the instruction wants of its second side,
//   u.v = u.w + 128 sum(u)   and   |u - v|^2 = |u|^2 - 256 sum(u) + |v|^2 - 2 u.w,
// exact in 32 bits for up to 32768 features.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "pairs/leaf_chunks.hpp"
#include "pairs/leaf.hpp"
#include "runtime/dispatch.hpp"

namespace mercer {
namespace {

constexpr int kLevels = 255;

// Fewer features are quick in any case; more would not be exact.
constexpr Size kFewFeatures = 17, kManyFeatures = 32768;

// With fewer rows on either side, looking for bytes costs more than it saves.
constexpr Size kFewRows = 64;

// Squares of multiples of such steps are ordinary float32 numbers.
constexpr double kSmallestStep = 1e-15, kLargestStep = 1e12;

// How far a level may be from its multiple of the step, relative to its value: twice what rounding
// to float32 can do to it.
constexpr double kTolerance = 0x1p-23;
constexpr double kDoubleTolerance = 0x1p-50;  // the same for levels that were never float32

// x + kShifter - kShifter is x rounded to a whole number.
template <class S>
constexpr S kShifter = sizeof(S) == 4 ? S(0x1.8p23) : S(0x1.8p52);

// --- finding the step ------------------------------------------------------------------------

// What is known of values seen so far: up to rounding they are multiples of most / levels.
struct Grid {
  double most = 0;
  int levels = 0;  // none as long as all values were zero

  double step() const { return most / levels; }

  // Makes the step as fine as `value` asks for; false when that is too fine for bytes.
  bool admit(double value) {
    if (value == 0) return true;
    if (!(value >= kSmallestStep && value <= kLevels * kLargestStep)) return false;
    if (levels == 0) most = value, levels = 1;
    const double place = value / step();
    for (int finer = 1; finer * levels <= kLevels && finer * place < kLevels + 1; ++finer) {
      if (std::abs(finer * place - std::round(finer * place)) > 1.0 / 4096) continue;
      const double next = step() / finer;
      most = std::max(most, value);
      levels = static_cast<int>(std::lround(most / next));
      return levels <= kLevels;
    }
    return false;
  }

  bool admit(const Grid& other) {
    return other.levels == 0 || (admit(other.step()) && admit(other.most));
  }
};

// Whether all values are near multiples of a step, and the largest of them. Vector code as long as
// everything is gathered in whole numbers, whose order is that of the floats they are the bits of.
template <class S>
bool near_multiples(const S* row, Size size, S per_step, S& most) {
  using Bits = std::conditional_t<sizeof(S) == 4, std::int32_t, std::int64_t>;
  Bits bad = 0, largest = 0;
  for (Size k = 0; k < size; ++k) {
    const S place = row[k] * per_step;
    const S gap = place - (place + kShifter<S> - kShifter<S>);
    bad |= (row[k] >= 0) & (gap * gap < S(1.0 / 1024)) ? 0 : 1;
    largest = std::max(largest, std::bit_cast<Bits>(row[k]));
  }
  most = std::bit_cast<S>(largest);
  return bad == 0;
}

template <class S>
bool admit_row(Grid& grid, const S* row, Size size) {
  S most = 0;
  if (grid.levels > 0 && near_multiples(row, size, static_cast<S>(1 / grid.step()), most)) {
    return static_cast<double>(most) <= grid.most || grid.admit(static_cast<double>(most));
  }
  return std::all_of(row, row + size,
                     [&](S value) { return grid.admit(static_cast<double>(value)); });
}

// The first value that does not fit ends the search, as a rule in the first row.
template <class S>
bool admit_all(Grid& grid, DenseInput<S> in, Work work) {
  std::vector<Grid> grids(static_cast<std::size_t>(chunks(in.rows)), grid);
  std::atomic<bool> fits{true};
  for_chunks(in.rows, work, [&](Size chunk, Size begin, Size end) {
    Grid mine = grid;
    for (Size r = begin; r < end && fits; ++r) {
      if (!admit_row(mine, in.values + r * in.features, in.features)) fits = false;
    }
    grids[static_cast<std::size_t>(chunk)] = mine;
  });
  return fits && std::all_of(grids.begin(), grids.end(),
                             [&](const Grid& other) { return grid.admit(other); });
}

// --- bytes -----------------------------------------------------------------------------------

// The value of each level, one for all its entries. Values that are only close, as are all in rows
// far away from zero, may be told apart by what lies below the step.
template <class S>
struct Palette {
  S value[kLevels + 1];

  Palette() { std::fill_n(value, kLevels + 1, std::numeric_limits<S>::quiet_NaN()); }

  bool admit(std::uint8_t level, S other) {
    S& mine = value[level];
    if (std::isnan(mine)) mine = other;
    return mine == other;
  }

  bool admit(const Palette& other) {
    for (int k = 0; k <= kLevels; ++k) {
      const bool known = !std::isnan(other.value[k]);
      if (known && !admit(static_cast<std::uint8_t>(k), other.value[k])) return false;
    }
    return true;
  }

  // The step that suits all levels best (least squares); zero when one of them is too far off.
  double step() const {
    double above = 0, below = 0;
    for (int k = 1; k <= kLevels; ++k) {
      if (std::isnan(value[k])) continue;
      above += k * static_cast<double>(value[k]);
      below += k * k;
    }
    const double step = above / below;
    const double allowed = all_float() ? kTolerance : kDoubleTolerance;
    for (int k = 0; k <= kLevels; ++k) {
      const double gap = std::abs(static_cast<double>(value[k]) - k * step);
      if (gap > allowed * k * step) return 0;  // not so for levels that do not occur: NaN
    }
    return step;
  }

  // Whether float32 rounded the levels once: then that is how far they may be from the step.
  bool all_float() const {
    return std::all_of(value, value + kLevels + 1, [](S level) {
      return std::isnan(level) || static_cast<S>(static_cast<float>(level)) == level;
    });
  }
};

template <class S>
bool to_levels(const S* row, Size size, S per_step, Palette<S>& palette, std::uint8_t* out) {
  for (Size k = 0; k < size; ++k) {
    const S level = row[k] * per_step + kShifter<S> - kShifter<S>;
    out[k] = static_cast<std::uint8_t>(static_cast<std::int32_t>(level));
  }
  bool known = true;
  for (Size k = 0; k < size; ++k) known &= palette.value[out[k]] == row[k];
  for (Size k = 0; k < size && !known; ++k) {
    if (!palette.admit(out[k], row[k])) return false;
  }
  return true;
}

// Rows of four levels per word, the last word filled up with zeros; empty when a level has two
// values.
template <class S>
Buffer<float> byte_rows(DenseInput<S> in, double step, Palette<S>& palette, Work work) {
  const Size d = in.features, words = round_up(d, 4) / 4;
  Buffer<float> rows(in.rows * words);
  std::vector<Palette<S>> palettes(static_cast<std::size_t>(chunks(in.rows)));
  std::atomic<bool> fits{true};
  for_chunks(in.rows, work, [&](Size chunk, Size begin, Size end) {
    Palette<S>& mine = palettes[static_cast<std::size_t>(chunk)];
    for (Size r = begin; r < end && fits; ++r) {
      auto* out = reinterpret_cast<std::uint8_t*>(rows.data() + r * words);
      std::fill(out + d, out + 4 * words, std::uint8_t{0});
      if (!to_levels(in.values + r * d, d, static_cast<S>(1 / step), mine, out)) fits = false;
    }
  });
  for (const Palette<S>& other : palettes) fits = fits && palette.admit(other);
  return fits ? std::move(rows) : Buffer<float>();
}

// square |u|^2 + linear sum(u) of each row, as a word.
Buffer<float> byte_margins(const Buffer<float>& rows, Size count, int square, int linear) {
  Buffer<float> out = padded_zeros<float>(count);
  const Size width = rows.size() / count * 4;
  for (Size r = 0; r < count; ++r) {
    const auto* row = reinterpret_cast<const std::uint8_t*>(rows.data()) + r * width;
    std::int32_t sum = 0, squares = 0;
    for (Size k = 0; k < width; ++k) {
      sum += row[k];
      squares += row[k] * row[k];
    }
    out[r] = std::bit_cast<float>(square * squares + linear * sum);
  }
  return out;
}

// Panels as in leaf_dense.cpp, of words that hold v - 128.
Buffer<float> byte_panels(const Buffer<float>& rows, Size count, Size words, int nr, Work work) {
  const Size panels = round_up(count, kTile) / nr;
  Buffer<float> out(panels * words * nr);
  const auto task = [&](Size panel, int) {
    const Size begin = panel * nr, filled = std::clamp<Size>(count - begin, 0, nr);
    auto* words_out = reinterpret_cast<std::uint32_t*>(out.data() + panel * words * nr);
    const auto* in = reinterpret_cast<const char*>(rows.data() + begin * words);
    for (Size k = 0; k < words; ++k) {
      for (Size j = 0; j < nr; ++j) {
        std::uint32_t word = 0;
        if (j < filled) std::memcpy(&word, in + 4 * (j * words + k), 4);
        words_out[k * nr + j] = word ^ 0x80808080u;  // subtracts 128 from each byte
      }
    }
  };
  parallel_for(panels, task, threads_for(count, work), *work.poll);
  return out;
}

}  // namespace

template <class S>
bool bind_bytes(Leaf<float>& leaf, DenseInput<S> x, const DenseInput<S>* y,
                const Tiles<float>& tiles, Work work) {
  const bool distance = leaf.statistic == kSqDist;
  if (!(distance || leaf.statistic == kDot) || !(tiles.bytes && has_byte_products())) return false;
  const Size count = y ? y->rows : x.rows;
  if (std::min(x.rows, count) < kFewRows) return false;
  if (x.features < kFewFeatures || x.features > kManyFeatures) return false;
  Grid grid;
  if (!admit_all(grid, x, work) || (y && !admit_all(grid, *y, work))) return false;
  if (grid.levels == 0 || grid.step() < kSmallestStep) return false;
  Palette<S> palette;
  Buffer<float> rows = byte_rows(x, grid.step(), palette, work), other;
  if (y) other = byte_rows(*y, grid.step(), palette, work);
  const Buffer<float>& columns = y ? other : rows;
  const double step = palette.step();
  if (rows.size() == 0 || columns.size() == 0 || step == 0) return false;
  leaf.kernel = kByteDot;
  leaf.features = round_up(x.features, 4) / 4;
  leaf.factor = distance ? -2 : 1;
  leaf.unit = static_cast<float>(step * step);
  leaf.x_margin = byte_margins(rows, x.rows, distance, distance ? -256 : 128);
  leaf.y_margin = byte_margins(columns, count, distance, 0);
  leaf.y_panels = byte_panels(columns, count, leaf.features, tiles.nr, work);
  leaf.x_rows = std::move(rows);
  return true;
}

template bool bind_bytes(Leaf<float>&, DenseInput<float>, const DenseInput<float>*,
                         const Tiles<float>&, Work);
template bool bind_bytes(Leaf<float>&, DenseInput<double>, const DenseInput<double>*,
                         const Tiles<float>&, Work);

}  // namespace mercer
