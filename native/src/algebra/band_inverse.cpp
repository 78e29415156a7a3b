// Diagonals of (K + shift I)^-1 = Q (B + shift I)^-1 Q' for many shifts.
//
// With B + shift I = L L' and Y = L^-1 Q', the diagonal is the column sums of Y squared. L is block
// bidiagonal with lower triangular L_ii and upper triangular L_i,i-1, so Y comes block row by block
// row, Y_i = L_ii^-1 (Q'_i - L_i,i-1 Y_i-1), independently for every column, and is never stored.
#include <algorithm>
#include <limits>
#include <vector>

#include "algebra/band.hpp"
#include "algebra/cholesky.hpp"
#include "runtime/pool.hpp"

namespace mercer::algebra {
namespace {

constexpr Size kMinBlock = kStrip;      // narrow bands are treated in wider blocks
constexpr Size kColumns = 3 * kStrip;   // columns of Q' per task: each block of L serves them all
constexpr Size kLine = 8;               // doubles of a cache line
constexpr Size kFactorBytes = Size{1} << 26;  // factors held at a time

// The band as given, with the blocks in which it is factored.
struct Blocks {
  Blocks(const double* lower, Size n, Size width)
      : lower(lower), n(n), width(width), size(std::max(std::min(width, n), kMinBlock)),
        ld(round_up(size, kStrip)), count((n + size - 1) / size) {}

  double entry(Size i, Size j) const {  // i >= j
    return i < n && i - j <= width ? lower[j * (width + 1) + i - j] : 0.0;
  }

  Size factor_entries() const { return 2 * count * size * ld; }

  const double* lower;
  Size n, width;
  Size size, ld, count;
};

// L_ii^-1 and L_i,i-1 for every block, rows `ld` apart. Explicit inverses of the small triangles
// make every step of the solution a product.
class Factor {
 public:
  explicit Factor(const Blocks& blocks) : blocks_(blocks), data_(blocks.factor_entries()) {}

  const double* inverse(Size i) const { return part(2 * i); }
  const double* below(Size i) const { return part(2 * i + 1); }

  // False when the shifted band is not positive definite.
  bool compute(double shift, const Poll& poll) {
    const Size size = blocks_.size, ld = blocks_.ld;
    Buffer<double> square(size * ld), turned(size * ld);
    for (Size i = 0; i < blocks_.count && !poll.stopped(); ++i) {
      load_square(i, shift, square.data());
      if (i > 0) subtract_below(i, previous_, turned, square);
      if (cholesky_serial(square.data(), size, ld) != 0) return false;
      invert(square.data(), part(2 * i));
      std::swap(square, previous_);
      if (square.size() == 0) square = Buffer<double>(size * ld);
    }
    return true;
  }

 private:
  double* part(Size index) const { return data_.data() + index * blocks_.size * blocks_.ld; }

  void load_square(Size i, double shift, double* to) const {
    const Size first = i * blocks_.size;
    for (Size r = 0; r < blocks_.size; ++r) {
      for (Size c = 0; c <= r; ++c) to[r * blocks_.ld + c] = blocks_.entry(first + r, first + c);
      // Rows past the end continue the band by the identity.
      to[r * blocks_.ld + r] = first + r < blocks_.n ? to[r * blocks_.ld + r] + shift : 1.0;
    }
  }

  // L_i,i-1 = B_i,i-1 L_i-1^-T, column strips of its transpose being solved; square -= its product
  // with its transpose.
  void subtract_below(Size i, const Buffer<double>& previous, Buffer<double>& turned, Buffer<double>& square) const {
    const Size size = blocks_.size, ld = blocks_.ld, first = i * size;
    double* below = part(2 * i + 1);
    for (Size strip = 0; strip < ld / kStrip; ++strip) {
      double* x = turned.data() + strip * kStrip * size;  // size x 32, contiguous
      for (Size c = 0; c < size; ++c)
        for (Size r = 0; r < kStrip; ++r)
          x[c * kStrip + r] = strip * kStrip + r < size
                                  ? blocks_.entry(first + strip * kStrip + r, first - size + c)
                                  : 0.0;
      solve_lower(previous.data(), size, ld, x);
      for (Size r = 0; r < std::min(kStrip, size - strip * kStrip); ++r)
        for (Size c = 0; c < size; ++c)
          below[(strip * kStrip + r) * ld + c] = x[c * kStrip + r];
    }
    for (Size strip = 0; strip < ld / kStrip; ++strip)
      multiply(Into::subtract, Shape::upper, size, size, {below, ld, 1},
               turned.data() + strip * kStrip * size, kStrip, square.data() + strip * kStrip, ld);
  }

  void invert(const double* l, double* inverse) const {
    const Size size = blocks_.size;
    Buffer<double> x(size * kStrip);
    for (Size strip = 0; strip < blocks_.ld; strip += kStrip) {
      x.clear();
      for (Size c = strip; c < std::min(strip + kStrip, size); ++c)
        x.data()[c * kStrip + c - strip] = 1.0;
      solve_lower(l, size, blocks_.ld, x.data());
      for (Size r = 0; r < size; ++r)
        std::copy_n(x.data() + r * kStrip, kStrip, inverse + r * blocks_.ld + strip);
    }
  }

  const Blocks& blocks_;
  Buffer<double> data_, previous_;
};

// Scratch of one worker: for each strip of its columns R_i, Y_i-1 and Y_i.
struct Strips {
  explicit Strips(Size size) : size(size), data(3 * kColumns * size) {}

  double* at(Size strip, Size which) const {
    return data.data() + (3 * strip + which) * size * kStrip;
  }

  Size size;
  Buffer<double> data;
};

// Rows first .. of all strips. Rows are far apart in memory and no hardware foresees the jumps, so
// the block after this one is asked for while this one is copied.
void load_rows(const double* qt, Size n, Size first, Size column, Size columns,
               const Strips& strips) {
  const Size rows = std::min(strips.size, n - first);
  if (columns < kColumns || rows < strips.size)
    for (Size strip = 0; strip * kStrip < columns; ++strip)
      std::fill_n(strips.at(strip, 0), strips.size * kStrip, 0.0);
  for (Size r = 0; r < rows; ++r) {
    const double* from = qt + (first + r) * n + column;
    if (first + r + strips.size < n)
      for (Size c = 0; c < columns; c += kLine)
        __builtin_prefetch(from + strips.size * n + c, 0, 2);
    for (Size c = 0; c < columns; c += kStrip)
      std::copy_n(from + c, std::min(kStrip, columns - c), strips.at(c / kStrip, 0) + r * kStrip);
  }
}

void add_squares(const double* y, Size rows, double* sums) {
  for (Size r = 0; r < rows; ++r)
    for (Size c = 0; c < kStrip; ++c) sums[c] += y[r * kStrip + c] * y[r * kStrip + c];
}

void solve_columns(const double* qt, const Blocks& blocks, const Factor& factor, Size column,
                   const Strips& strips, double* out) {
  const Size columns = std::min(kColumns, blocks.n - column), size = blocks.size;
  double sums[kColumns] = {};
  for (Size i = 0; i < blocks.count; ++i) {
    load_rows(qt, blocks.n, i * size, column, columns, strips);
    for (Size strip = 0; strip * kStrip < columns; ++strip) {
      double* r = strips.at(strip, 0);
      double* y = strips.at(strip, 1 + i % 2);
      if (i > 0)
        multiply(Into::subtract, Shape::upper, size, size, {factor.below(i), blocks.ld, 1},
                 strips.at(strip, 1 + (i + 1) % 2), kStrip, r, kStrip);
      multiply(Into::assign, Shape::lower, size, size, {factor.inverse(i), blocks.ld, 1}, r, kStrip,
               y, kStrip);
      add_squares(y, size, sums + strip * kStrip);
    }
  }
  std::copy_n(sums, columns, out + column);
}

}  // namespace

void band_inverse_diagonals(const double* qt, const double* lower, Size n, Size width,
                            const double* shifts, Size count, double* out, int threads,
                            Poll& poll) {
  const Blocks blocks(lower, n, width);
  std::fill_n(out, n * count, std::numeric_limits<double>::quiet_NaN());
  if (n == 0 || count == 0) return;
  const Size bytes = blocks.factor_entries() * static_cast<Size>(sizeof(double));
  const Size batch = std::min(count, std::max<Size>(threads, kFactorBytes / bytes));
  std::vector<Factor> factors;
  for (Size s = 0; s < batch; ++s) factors.emplace_back(blocks);
  std::vector<Strips> strips;
  for (int worker = 0; worker < threads; ++worker) strips.emplace_back(blocks.size);
  std::vector<char> definite(static_cast<std::size_t>(batch));
  const Size groups = round_up(n, kColumns) / kColumns;
  for (Size first = 0; first < count && !poll.stopped(); first += batch) {
    const Size now = std::min(batch, count - first);
    parallel_for(
        now,
        [&](Size s, int) {
          definite[static_cast<std::size_t>(s)] =
              factors[static_cast<std::size_t>(s)].compute(shifts[first + s], poll);
        },
        threads, poll);
    parallel_for(
        groups * now,
        [&](Size task, int worker) {
          const std::size_t s = static_cast<std::size_t>(task % now);
          if (!definite[s]) return;
          solve_columns(qt, blocks, factors[s], task / now * kColumns,
                        strips[static_cast<std::size_t>(worker)],
                        out + (first + task % now) * n);
        },
        threads, poll);
  }
}

}  // namespace mercer::algebra
