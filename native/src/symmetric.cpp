// A stored symmetric matrix times a block of vectors, each tile read once from memory.
#include "mercer/symmetric.hpp"

namespace mercer {

std::vector<double> column_scales(const double* v, Size rows, int vectors) {
  std::vector<double> largest(static_cast<std::size_t>(vectors), 0.0);
  for (Size j = 0; j < rows; ++j) {
    for (int c = 0; c < vectors; ++c) {
      const double x = std::fabs(v[j * vectors + c]);
      largest[c] = x > largest[c] ? x : largest[c];
    }
  }
  for (double& x : largest) {
    if (!(x > 0) || !std::isfinite(x)) x = 1.0;
    int exponent = 0;
    std::frexp(x, &exponent);
    x = std::ldexp(1.0, std::clamp(exponent, -1021, 1021));
  }
  return largest;
}

namespace {

// One call: what all its tiles share.
template <class T>
struct Stored {
  const Tiles<T>& tiles;
  const T* k;
  Size n;
  const PackedVectors<T>& right;
  double* out;

  int rows_of(Size tile) const { return static_cast<int>(std::min<Size>(kTile, n - tile * kTile)); }

  void diagonal(Size tile) const {
    const Size first = tile * kTile;
    const int rows = rows_of(tile);
    tiles.multiply({k + first * n + first, n, rows, rows, right.at(first), right.width,
                    right.count, out + first * right.count, right.count, true});
  }

  void above(Size row_tile, Size column_tile, T* turned) const {
    const Size first = row_tile * kTile, column = column_tile * kTile;
    const int columns = rows_of(column_tile);
    tiles.multiply_both({k + first * n + column, n, rows_of(row_tile), columns, right.at(column),
                         right.of_rows(first), right.width, right.count,
                         out + first * right.count, right.count, turned, true});
    tiles.collect(turned, right.width, columns, right.count, out + column * right.count);
  }
};

}  // namespace

template <class T>
void multiply_symmetric(const T* k, Size n, const double* v, int vectors, double* out, Work work) {
  const Tiles<T>& tiles = mercer::tiles<T>();
  const std::vector<double> scales = column_scales(v, n, vectors);
  const PackedVectors<T> right = pack_vectors<T>(v, n, vectors, scales.data(), tiles.lanes);
  std::fill_n(out, n * vectors, 0.0);
  const Stored<T> stored{tiles, k, n, right, out};
  const Size width = right.per_row();
  Buffer<T> turned(std::max(1, work.threads) * kTile * width);
  std::fill_n(turned.data(), turned.size(), T(0));
  Tournament((n + kTile - 1) / kTile)
      .run(work, [&](Size row, Size rows_end, Size column, Size columns_end, int worker) {
        T* mine = turned.data() + worker * kTile * width;
        for (Size i = row; i < rows_end; ++i) {
          if (worker == 0) work.poll->check();
          if (row == column) stored.diagonal(i);
          const Size from = row == column ? i + 1 : column;
          for (Size j = from; j < columns_end; ++j) stored.above(i, j, mine);
        }
      });
  for (Size i = 0; i < n; ++i) {
    for (int c = 0; c < vectors; ++c) out[i * vectors + c] *= scales[c];
  }
}

template void multiply_symmetric<float>(const float*, Size, const double*, int, double*, Work);
template void multiply_symmetric<double>(const double*, Size, const double*, int, double*, Work);

}  // namespace mercer
