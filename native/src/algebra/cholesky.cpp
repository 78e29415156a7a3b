// Blocked right-looking Cholesky factorisation.
//
// Per block of columns: factor the square on the diagonal (the same algorithm with small blocks),
// solve for the rows below it in groups of 32, subtract their products from the rest in tiles.
#include "algebra/cholesky.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/arena.hpp"
#include "runtime/pool.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kLarge = 192;        // columns of a block; a tile and its factors then fit level 2
constexpr Size kTile = 6 * kStrip;  // rows and columns of a tile of the update
constexpr Size kSolve = 8;          // rows solved one by one before the next product

// Where tasks run: in the pool, or (poll is null) here, without looking at signals.
struct Place {
  int threads = 1;
  Poll* poll = nullptr;

  template <class F>
  void each(Size tasks, F&& function) const {
    if (poll != nullptr)
      return parallel_for(tasks, [&](Size task, int) { function(task); }, threads, *poll);
    for (Size task = 0; task < tasks; ++task) function(task);
  }
};

// What is below the diagonal square, solved. `tall` is L21 by rows; `wide` holds groups of 32 of
// its rows, each transposed to depth x 32: the layouts of the left and the right factor.
template <class T>
struct Below {
  Below(Size rows, Size depth)
      : rows(rows), depth(depth), tall(rows * depth), wide(round_up(rows, kStrip) * depth) {}

  T* group(Size g) const { return wide.data() + g * depth * kStrip; }

  Size rows, depth;
  Buffer<T> tall, wide;
};

template <class T>
void pack_group(const T* from, Size ld, Size height, Size depth, T* x) {
  if (height < kStrip) std::fill_n(x, depth * kStrip, T(0));
  for (Size i = 0; i < height; ++i)
    for (Size k = 0; k < depth; ++k) x[k * kStrip + i] = from[i * ld + k];
}

template <class T>
void unpack_group(const T* x, Size height, Size depth, T* to, Size ld, T* tall) {
  for (Size i = 0; i < height; ++i) {
    for (Size k = 0; k < depth; ++k) to[i * ld + k] = x[k * kStrip + i];
    std::copy_n(to + i * ld, depth, tall + i * depth);
  }
}

// `a` is the diagonal square; the rows below it follow it.
template <class T>
void solve_group(T* a, Size ld, const Below<T>& below, Size g) {
  const Size row = g * kStrip;
  const Size height = std::min(kStrip, below.rows - row);
  T* rows = a + (below.depth + row) * ld;
  pack_group(rows, ld, height, below.depth, below.group(g));
  solve_lower(a, below.depth, ld, below.group(g));
  unpack_group(below.group(g), height, below.depth, rows, ld,
               below.tall.data() + row * below.depth);
}

// On the diagonal only the lower half may be written: the user's upper triangle stays.
template <class T>
void update_diagonal(T* c, Size ld, const Below<T>& below, Size g) {
  alignas(kAlignment) T square[kStrip * kStrip];
  const Size height = std::min(kStrip, below.rows - g * kStrip);
  const T* left = below.tall.data() + g * kStrip * below.depth;
  multiply(Into::assign, Shape::full, height, below.depth, {left, below.depth, 1}, below.group(g),
           kStrip, square, kStrip);
  for (Size i = 0; i < height; ++i)
    for (Size j = 0; j <= i; ++j) c[i * ld + j] -= square[i * kStrip + j];
}

// Subtracts L21 L21' from one tile of the trailing square `c`.
template <class T>
void update_tile(T* c, Size ld, const Below<T>& below, Size tile_row, Size tile_column) {
  const Size end = std::min(below.rows, (tile_row + 1) * kTile);
  for (Size column = tile_column * kTile; column < std::min(end, (tile_column + 1) * kTile);
       column += kStrip) {
    if (tile_row == tile_column)
      update_diagonal(c + column * ld + column, ld, below, column / kStrip);
    const Size row = std::max(tile_row * kTile, column + kStrip);
    if (row >= end) continue;
    multiply(Into::subtract, Shape::full, end - row, below.depth,
             {below.tall.data() + row * below.depth, below.depth, 1}, below.group(column / kStrip),
             kStrip, c + row * ld + column, ld);
  }
}

template <class T>
void update_trailing(T* c, Size ld, const Below<T>& below, const Place& place) {
  const Size side = round_up(below.rows, kTile) / kTile;
  place.each(side * (side + 1) / 2, [&](Size task) {
    Size row = static_cast<Size>((std::sqrt(8.0 * static_cast<double>(task) + 1.0) - 1.0) / 2);
    while ((row + 1) * (row + 2) / 2 <= task) ++row;
    while (row * (row + 1) / 2 > task) --row;
    update_tile(c, ld, below, row, task - row * (row + 1) / 2);
  });
}

template <class T>
Size factor_small(T* a, Size n, Size ld) {
  T column[kStrip];
  for (Size j = 0; j < n; ++j) {
    const T pivot = a[j * ld + j];
    if (!(pivot > T(0))) return j + 1;
    const T root = std::sqrt(pivot);
    a[j * ld + j] = root;
    for (Size i = j + 1; i < n; ++i) column[i] = a[i * ld + j] /= root;
    for (Size i = j + 1; i < n; ++i)
      for (Size c = j + 1; c <= i; ++c) a[i * ld + c] -= column[i] * column[c];
  }
  return 0;
}

template <class T>
Size factor(T* a, Size n, Size ld, Size width, const Place& place) {
  for (Size k = 0; k < n; k += width) {
    T* diagonal = a + k * ld + k;
    const Size depth = std::min(width, n - k);
    const Size failed = depth > kStrip ? factor(diagonal, depth, ld, kStrip, Place{})
                                       : factor_small(diagonal, depth, ld);
    if (failed != 0) return k + failed;
    const Below<T> below(n - k - depth, depth);
    place.each(round_up(below.rows, kStrip) / kStrip,
               [&](Size g) { solve_group(diagonal, ld, below, g); });
    update_trailing(diagonal + depth * (ld + 1), ld, below, place);
    if (place.poll != nullptr && place.poll->stopped()) break;
  }
  return 0;
}

}  // namespace

template <class T>
Size cholesky(T* a, Size n, Size ld, int threads, Poll& poll) {
  return factor(a, n, ld, kLarge, {threads, &poll});
}

template <class T>
Size cholesky_serial(T* a, Size n, Size ld) { return factor(a, n, ld, kLarge, Place{}); }

template <class T>
void solve_lower(const T* l, Size n, Size ld, T* x) {
  for (Size start = 0; start < n; start += kSolve) {
    const Size end = std::min(n, start + kSolve);
    multiply(Into::subtract, Shape::full, end - start, start, {l + start * ld, ld, 1}, x, kStrip,
             x + start * kStrip, kStrip);
    for (Size i = start; i < end; ++i) {
      T* row = x + i * kStrip;
      multiply(Into::subtract, Shape::full, 1, i - start, {l + i * ld + start, ld, 1},
               x + start * kStrip, kStrip, row, kStrip);
      const T scale = T(1) / l[i * ld + i];
      for (Size c = 0; c < kStrip; ++c) row[c] *= scale;
    }
  }
}

template Size cholesky(float*, Size, Size, int, Poll&);
template Size cholesky(double*, Size, Size, int, Poll&);
template Size cholesky_serial(float*, Size, Size);
template Size cholesky_serial(double*, Size, Size);
template void solve_lower(const float*, Size, Size, float*);
template void solve_lower(const double*, Size, Size, double*);

}  // namespace mercer::algebra
