// Products with symmetric matrices from one triangle: each tile is used for both of its places.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "pairs/leaf.hpp"
#include "runtime/pool.hpp"

namespace mercer {

// Whether vectors run along the columns of the tile, since the right-hand sides would leave many
// lanes idle.
constexpr bool too_few(int vectors, int lanes) { return vectors <= std::max(6, lanes / 2); }

// Right-hand sides in the working type, in the orders the strips read them: [row][width]; or, when
// there are too few to fill a register (width 0), [row / lanes][vector][lane] for the columns of a
// tile and [row][vector] for its rows.
template <class T>
struct PackedVectors {
  Buffer<T> values;
  Buffer<T> rows;
  int count;
  int width;

  // Of the columns from `column` on, the first of a tile.
  const T* at(Size column) const { return values.data() + column * per_row(); }
  const T* of_rows(Size row) const { return (width ? values : rows).data() + row * per_row(); }
  int per_row() const { return width ? width : count; }
};

// V (rows x vectors, C order), each column divided by its scale (null: by nothing).
template <class T>
PackedVectors<T> pack_vectors(const double* v, Size rows, int vectors, const double* scales,
                              int lanes) {
  const bool few = too_few(vectors, lanes);
  const int width = few ? 0 : static_cast<int>(round_up(vectors, lanes));
  const Size size = few ? round_up(rows, lanes) * vectors : rows * width;
  PackedVectors<T> out{Buffer<T>(size), Buffer<T>(few ? rows * vectors : 0), vectors, width};
  std::fill_n(out.values.data(), size, T(0));
  std::vector<double> factors(static_cast<std::size_t>(vectors), 1.0);
  for (int c = 0; scales != nullptr && c < vectors; ++c) factors[c] = 1.0 / scales[c];
  for (Size j = 0; j < rows; ++j) {
    const double* from = v + j * vectors;
    T* to = out.values.data() + (few ? (j - j % lanes) * vectors + j % lanes : j * width);
    for (int c = 0; c < vectors; ++c) {
      const T x = static_cast<T>(from[c] * factors[c]);
      to[few ? c * lanes : c] = x;
      if (few) out.rows[j * vectors + c] = x;
    }
  }
  return out;
}

// Powers of two near the largest entries of the columns, so that V fits float32 after division.
std::vector<double> column_scales(const double* v, Size rows, int vectors);

// Blocks of a symmetric matrix in an order in which threads need no sums of their own: as in a
// tournament of all blocks of rows against all, every block plays once a round. A tile (I, J), I
// before J, adds to the rows of I and of J, and waits until these two have played all earlier
// rounds. So every row gets its terms in one order, whatever the number of threads.
class Tournament {
 public:
  // `tiles` of a side; each block of rows has a few of them.
  explicit Tournament(Size tiles)
      : tiles_(tiles),
        side_(std::clamp<Size>(tiles / kBlocks, 1, kMostTiles)),
        blocks_((tiles + side_ - 1) / side_),
        even_(blocks_ + blocks_ % 2),
        played_(static_cast<std::size_t>(blocks_)) {}

  // Calls play(first tile row, end, first tile column, end, worker): once for each block on the
  // diagonal (both ranges are the same), once for each one above it.
  template <class Play>
  void run(Work work, Play&& play) {
    const Size pairs = even_ / 2, matches = blocks_ + (even_ - 1) * pairs;
    const auto task = [&](Size number, int worker) {
      const Size round = number < blocks_ ? 0 : 1 + (number - blocks_) / pairs;
      Size a = number, b = number;
      if (round > 0) {
        const Size others = even_ - 1, seat = (number - blocks_) % pairs;
        a = seat == 0 ? others : (round + seat) % others;
        b = (round + others - seat) % others;
      }
      const Size first = std::min(a, b), second = std::max(a, b);
      if (first < blocks_ && await(first, round, *work.poll) &&
          (second >= blocks_ || await(second, round, *work.poll))) {
        // an odd one out only notes that the round is over
        if (second < blocks_) play(begin(first), end(first), begin(second), end(second), worker);
        finish(first, round);
        if (second < blocks_ && second != first) finish(second, round);
      }
    };
    // matches are handed out in order, so what a match waits for is always at work
    if (blocks_ > 0) parallel_for(blocks_ == 1 ? 1 : matches, task, work.threads, *work.poll);
  }

 private:
  static constexpr Size kBlocks = 16, kMostTiles = 8;

  Size begin(Size block) const { return block * side_; }
  Size end(Size block) const { return std::min(tiles_, (block + 1) * side_); }

  bool await(Size block, Size round, const Poll& poll) const {
    const std::atomic<Size>& played = played_[static_cast<std::size_t>(block)];
    for (int spins = 0; played.load(std::memory_order_acquire) < round; ++spins) {
      if (poll.stopped()) return false;
      if (spins > 100) std::this_thread::yield();
    }
    return true;
  }

  void finish(Size block, Size round) {
    played_[static_cast<std::size_t>(block)].store(round + 1, std::memory_order_release);
  }

  Size tiles_, side_, blocks_, even_;
  std::vector<std::atomic<Size>> played_;
};

// Rows in parts: column c of V is read in part g only if reads[g * vectors + c], and its product
// is only made there if writes[g * vectors + c]; it is zero elsewhere.
struct RowParts {
  std::vector<Size> ends;
  const bool* reads;
  const bool* writes;
};

// out (n x vectors) gets K V for a stored symmetric K (C order); reads the triangle above. All of
// it where no parts are given.
template <class T>
void multiply_symmetric(const T* k, Size n, const double* v, int vectors, const RowParts* parts,
                        double* out, Work work);

}  // namespace mercer
