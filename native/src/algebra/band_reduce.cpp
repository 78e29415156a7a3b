// Reduction of a symmetric matrix to a band.
//
// Per panel of `width` columns: QR of the part below the band gives V and T; with X = V T,
// U = A X and W = U - V (X'U)/2, the rest becomes A - V W' - W V'. Two choices make it fast:
//
// * A is kept as its lower triangle of square tiles, each contiguous: half the memory and half of
//   the update.
// * The update of one step and the product A X of the next are one pass: a tile is changed and
//   multiplied while it is in the cache. The panel itself is brought up to date ahead of the rest.
#include <algorithm>
#include <cmath>
#include <vector>

#include "algebra/band.hpp"
#include "algebra/panel.hpp"
#include "runtime/pool.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kTile = 6 * kStrip;  // a multiple of the 6 rows and 32 columns of the product
constexpr Size kMaxSlots = 16;

// The lower triangle of tiles; diagonal tiles are full squares. Zero beyond n.
class Tiles {
 public:
  explicit Tiles(Size n)
      : n(n), side(round_up(n, kTile) / kTile), data_(side * (side + 1) / 2 * kTile * kTile) {}

  double* at(Size row, Size column) const {
    return data_.data() + (row * (row + 1) / 2 + column) * kTile * kTile;
  }

  Size extent(Size tile) const { return std::min(kTile, n - tile * kTile); }

  void load_row(const double* a, Size row) const {
    std::fill_n(at(row, 0), (row + 1) * kTile * kTile, 0.0);
    for (Size column = 0; column < row; ++column)
      for (Size i = 0; i < extent(row); ++i)
        std::copy_n(a + (row * kTile + i) * n + column * kTile, kTile,
                    at(row, column) + i * kTile);
    double* square = at(row, row);
    for (Size i = 0; i < extent(row); ++i)
      for (Size j = 0; j <= i; ++j)
        square[i * kTile + j] = square[j * kTile + i] = a[(row * kTile + i) * n + row * kTile + j];
  }

  const Size n, side;

 private:
  Buffer<double> data_;
};

// The rank-2 update still to be applied: V W' + W V'. Rows of `tall` are [V_i, W_i]; group g of
// `wide` is the transpose of [W, V] for rows 32 g .. 32 g + 31.
struct Pending {
  Pending(Size padded, Size width)
      : width(width), tall(2 * padded * width), wide(2 * padded * width) {
    tall.clear();
    wide.clear();
  }

  double* row(Size i) const { return tall.data() + i * 2 * width; }
  double* group(Size g) const { return wide.data() + g * 2 * width * kStrip; }

  void set(Size i, const double* v, const double* w) const {
    std::copy_n(v, width, row(i));
    std::copy_n(w, width, row(i) + width);
    double* column = group(i / kStrip) + i % kStrip;
    for (Size k = 0; k < width; ++k) {
      column[k * kStrip] = w[k];
      column[(width + k) * kStrip] = v[k];
    }
  }

  Size width;
  Buffer<double> tall, wide;
};

// Partial sums of U = A X over a fixed share of the tiles, so that the order of summation is the
// same for any number of threads. `reached` says which tile rows of `u` hold something.
struct Slot {
  Slot(Size padded, Size ld, Size side) : u(padded * ld), reached(side) {}

  Into first_time(Size tile) {
    if (reached[tile]) return Into::add;
    reached[tile] = 1;
    return Into::assign;
  }

  Buffer<double> u;
  std::vector<char> reached;
  Size begin = 0, end = 0;  // tiles in the order of rows
};

Size slot_count(Size side) {
  Size count = 1;
  while (2 * count <= std::min(kMaxSlots, side / 2)) count *= 2;
  return count;
}

class Reduction {
 public:
  Reduction(double* a, Size n, Size width, double* lower, int threads, Poll& poll)
      : n_(n), width_(width), ld_(round_up(width, kStrip)), threads_(threads), poll_(poll),
        a_(a), lower_(lower), tiles_(n), padded_(tiles_.side * kTile), pending_(padded_, width),
        panel_(width * padded_), t_(width * width), r_(width * width), v_(padded_ * ld_),
        x_(padded_ * ld_), u_(padded_ * ld_), inner_(width * ld_),
        partial_(tiles_.side * width * ld_) {
    for (Size s = 0; s < slot_count(tiles_.side); ++s)
      slots_.emplace_back(padded_, ld_, tiles_.side);
  }

  Reflections run() {
    each_tile_row(0, [&](Size row) { tiles_.load_row(a_, row); });
    std::fill_n(lower_, n_ * (width_ + 1), 0.0);
    const Size steps = (n_ - 2) / width_;  // each leaves at least two rows below the band
    Reflections out{a_, n_, width_, steps, Buffer<double>(steps * width_ * width_)};
    for (Size step = 0; step < steps && !poll_.stopped(); ++step) {
      const Size j = step * width_;
      take_columns(j, width_);
      factor_panel(j);
      std::copy_n(t_.data(), width_ * width_, out.t.data() + step * width_ * width_);
      spread_panel(j + width_);
      update_and_multiply(j + width_);
      finish_step(j + width_);
    }
    take_columns(steps * width_, n_ - steps * width_);
    return out;
  }

 private:
  template <class F>
  void each_tile_row(Size first, F&& function) {
    parallel_for(
        tiles_.side - first, [&](Size task, int) { function(first + task); }, threads_, poll_);
  }

  // Brings columns j .. j + count up to date, writes their square on the diagonal to the band and
  // what is below row j + width transposed to the panel.
  void take_columns(Size j, Size count) {
    const Size stride = round_up(count, kStrip);
    Buffer<double> right(2 * width_ * stride);  // the transpose of [W, V] for the rows j ..
    right.clear();
    for (Size k = 0; k < 2 * width_; ++k)
      for (Size c = 0; c < count; ++c)
        right.data()[k * stride + c] = pending_.row(j + c)[(k + width_) % (2 * width_)];
    panel_rows_ = std::max<Size>(0, n_ - j - width_);
    panel_ld_ = round_up(panel_rows_, kStrip);
    for (Size c = 0; c < width_ && panel_ld_ > panel_rows_; ++c)
      std::fill(panel_.data() + c * panel_ld_ + panel_rows_, panel_.data() + (c + 1) * panel_ld_,
                0.0);
    each_tile_row(j / kTile, [&](Size tile) { take_rows(tile, j, count, stride, right); });
  }

  void take_rows(Size tile, Size j, Size count, Size stride, const Buffer<double>& right) {
    const Size first = std::max(j, tile * kTile), rows = tile * kTile + tiles_.extent(tile) - first;
    Buffer<double> now(rows * stride);
    now.clear();
    for (Size i = 0; i < rows; ++i) read_row(first + i, j, count, now.data() + i * stride);
    for (Size c = 0; c < stride; c += kStrip)
      multiply(Into::subtract, Shape::full, rows, 2 * width_, {pending_.row(first), 2 * width_, 1},
               right.data() + c, stride, now.data() + c, stride);
    for (Size i = 0; i < rows; ++i) {
      const Size row = first + i;
      for (Size c = 0; c < count; ++c) {
        const double value = now.data()[i * stride + c];
        if (row < j + count && row - j >= c) lower_[(j + c) * (width_ + 1) + row - j - c] = value;
        if (row >= j + width_ && c < width_)
          panel_.data()[c * panel_ld_ + row - j - width_] = value;
      }
    }
  }

  // Entries (row, j .. min(j + count, row)) of the stored triangle.
  void read_row(Size row, Size j, Size count, double* out) const {
    const Size end = std::min(j + count, row + 1);
    for (Size c = j; c < end;) {
      const Size stop = std::min(end, (c / kTile + 1) * kTile);
      const double* from = tiles_.at(row / kTile, c / kTile) + row % kTile * kTile + c % kTile;
      std::copy_n(from, stop - c, out + c - j);
      c = stop;
    }
  }

  void factor_panel(Size j) {
    panel_qr(panel_.data(), width_, panel_rows_, panel_ld_, t_.data(), r_.data());
    const Size rows = std::min(width_, panel_rows_);
    for (Size c = 0; c < width_; ++c)
      for (Size i = 0; i <= std::min(c, rows - 1); ++i)
        lower_[(j + c) * (width_ + 1) + width_ + i - c] = r_.data()[i * width_ + c];
  }

  // V and X = V T by rows, V' into the destroyed matrix.
  void spread_panel(Size start) {
    Buffer<double> right(width_ * ld_);
    right.clear();
    for (Size i = 0; i < width_; ++i)
      std::copy_n(t_.data() + i * width_, width_, right.data() + i * ld_);
    for (Size i = start / kTile * kTile; i < start; ++i) std::fill_n(x_.data() + i * ld_, ld_, 0.0);
    each_tile_row(start / kTile, [&](Size tile) {
      const Size first = std::max(start, tile * kTile);
      const Size rows = tile * kTile + tiles_.extent(tile) - first;
      double* v = v_.data() + first * ld_;
      std::fill_n(v, rows * ld_, 0.0);
      for (Size c = 0; c < width_; ++c) {
        const double* from = panel_.data() + c * panel_ld_ + first - start;
        std::copy_n(from, rows, a_ + (start - width_ + c) * n_ + first);
        for (Size i = 0; i < rows; ++i) v[i * ld_ + c] = from[i];
      }
      for (Size c = 0; c < ld_; c += kStrip)
        multiply(Into::assign, Shape::full, rows, width_, {v, ld_, 1}, right.data() + c, ld_,
                 x_.data() + first * ld_ + c, ld_);
    });
  }

  void update_and_multiply(Size start) {
    share_tiles(start / kTile);
    parallel_for(
        static_cast<Size>(slots_.size()),
        [&](Size s, int) {
          Slot& slot = slots_[static_cast<std::size_t>(s)];
          Size task = 0;
          for (Size row = start / kTile; row < tiles_.side; ++row)
            for (Size column = start / kTile; column <= row; ++column, ++task)
              if (task >= slot.begin && task < slot.end && !poll_.stopped())
                treat_tile(row, column, start, slot);
        },
        threads_, poll_);
  }

  void share_tiles(Size first) {
    const Size side = tiles_.side - first, total = side * (side + 1) / 2;
    const Size count = static_cast<Size>(slots_.size());
    for (Size s = 0; s < count; ++s) {
      Slot& slot = slots_[static_cast<std::size_t>(s)];
      slot.begin = total * s / count;
      slot.end = total * (s + 1) / count;
      std::fill(slot.reached.begin(), slot.reached.end(), 0);
    }
  }

  void treat_tile(Size row, Size column, Size start, Slot& slot) {
    double* tile = tiles_.at(row, column);
    const Size top = std::max<Size>(0, start - row * kTile), rows = tiles_.extent(row) - top;
    const Size skipped = std::max<Size>(0, start - column * kTile) / kStrip * kStrip;
    const Size columns = tiles_.extent(column) - skipped;
    const Size i = row * kTile + top, j = column * kTile + skipped;
    double* corner = tile + top * kTile + skipped;
    for (Size c = 0; c < columns; c += kStrip)
      multiply(Into::subtract, Shape::full, rows, 2 * width_, {pending_.row(i), 2 * width_, 1},
               pending_.group((j + c) / kStrip), kStrip, corner + c, kTile);
    add_product({corner, kTile, 1}, rows, columns, i, j, slot.first_time(row), slot);
    if (row != column)
      add_product({corner, 1, kTile}, columns, rows, j, i, slot.first_time(column), slot);
  }

  // Rows i .. of U (+)= left times rows j .. of X.
  void add_product(Left<double> left, Size rows, Size depth, Size i, Size j, Into into,
                   Slot& slot) {
    for (Size c = 0; c < ld_; c += kStrip)
      multiply(into, Shape::full, rows, depth, left, x_.data() + j * ld_ + c, ld_,
               slot.u.data() + i * ld_ + c, ld_);
  }

  // U from its parts, X'U, W = U - V (X'U)/2; V and W become the pending update.
  void finish_step(Size start) {
    const Size square = width_ * ld_;
    each_tile_row(start / kTile, [&](Size tile) {
      const Size first = std::max(start, tile * kTile);
      const Size rows = tile * kTile + tiles_.extent(tile) - first;
      gather_u(tile, first, rows);
      for (Size c = 0; c < ld_; c += kStrip)
        multiply(Into::assign, Shape::full, width_, rows, {x_.data() + first * ld_, 1, ld_},
                 u_.data() + first * ld_ + c, ld_, partial_.data() + tile * square + c, ld_);
    });
    inner_.clear();
    for (Size tile = start / kTile; tile < tiles_.side; ++tile)
      for (Size k = 0; k < square; ++k)
        inner_.data()[k] += 0.5 * partial_.data()[tile * square + k];
    each_tile_row(start / kTile, [&](Size tile) {
      const Size first = std::max(start, tile * kTile);
      const Size rows = tile * kTile + tiles_.extent(tile) - first;
      for (Size c = 0; c < ld_; c += kStrip)
        multiply(Into::subtract, Shape::full, rows, width_, {v_.data() + first * ld_, ld_, 1},
                 inner_.data() + c, ld_, u_.data() + first * ld_ + c, ld_);
      for (Size i = first; i < first + rows; ++i)
        pending_.set(i, v_.data() + i * ld_, u_.data() + i * ld_);
    });
  }

  void gather_u(Size tile, Size first, Size rows) {
    double* to = u_.data() + first * ld_;
    std::fill_n(to, rows * ld_, 0.0);
    for (const Slot& slot : slots_) {
      if (!slot.reached[static_cast<std::size_t>(tile)]) continue;
      const double* from = slot.u.data() + first * ld_;
      for (Size k = 0; k < rows * ld_; ++k) to[k] += from[k];
    }
  }

  const Size n_, width_, ld_;  // ld_: the width rounded up to whole strips
  const int threads_;
  Poll& poll_;
  double* a_;
  double* lower_;
  Tiles tiles_;
  const Size padded_;
  Pending pending_;
  Buffer<double> panel_, t_, r_, v_, x_, u_, inner_, partial_;
  Size panel_rows_ = 0, panel_ld_ = 0;
  std::vector<Slot> slots_;
};

// A matrix that is its own band.
Reflections copy_band(double* a, Size n, Size width, double* lower) {
  std::fill_n(lower, n * (width + 1), 0.0);
  for (Size j = 0; j < n; ++j)
    for (Size k = 0; j + k < n; ++k) lower[j * (width + 1) + k] = a[(j + k) * n + j];
  return {a, n, width, 0, Buffer<double>(0)};
}

}  // namespace

Reflections band_reduce(double* a, Size n, Size width, double* lower, int threads, Poll& poll) {
  if (n <= width + 1) return copy_band(a, n, width, lower);
  return Reduction(a, n, width, lower, threads, poll).run();
}

}  // namespace mercer::algebra
