// A stored symmetric matrix times a block of vectors, each tile read once from memory.
#include "pairs/symmetric.hpp"

#include "runtime/dispatch.hpp"

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

constexpr Size kSide = 384;  // of a tile, about: its right-hand sides stay in the first cache

struct Range {
  Size begin;
  int size;
  Size part;
};

// Parts in pieces of about one size, that begin at whole vectors of their part.
std::vector<Range> pieces(const std::vector<Size>& ends, int lanes) {
  std::vector<Range> out;
  for (Size begin = 0, part = 0; part < static_cast<Size>(ends.size()); ++part) {
    const Size length = ends[part] - begin, count = std::max<Size>(1, (length + kSide / 2) / kSide);
    const Size step = round_up(std::max<Size>(1, (length + count - 1) / count), lanes);
    for (; begin < ends[part]; begin = out.back().begin + out.back().size) {
      out.push_back({begin, static_cast<int>(std::min(step, ends[part] - begin)), part});
    }
  }
  return out;
}

// One call: what all its tiles share. Right-hand sides and sums lie one after another; after the
// last right-hand side comes one of zeros, for tiles whose rows need fewer than their columns.
template <class T>
struct Stored {
  const Tiles<T>& tiles;
  const T* k;
  Size n;
  int vectors;
  const RowParts* parts;
  Size apart;
  Buffer<T> right;
  Buffer<double> sums;

  Stored(const Tiles<T>& tiles, const T* k, Size n, const double* v, int vectors,
         const double* scales, const RowParts* parts)
      : tiles(tiles), k(k), n(n), vectors(vectors), parts(parts),
        apart(round_up(n, tiles.lanes) + tiles.lanes),
        right((vectors + 1) * apart), sums(vectors * n) {
    std::fill_n(right.data(), right.size(), T(0));
    std::fill_n(sums.data(), sums.size(), 0.0);
    for (int c = 0; c < vectors; ++c) {
      const double factor = 1.0 / scales[c];
      T* to = right.data() + c * apart;
      for (Size j = 0; j < n; ++j) to[j] = static_cast<T>(v[j * vectors + c] * factor);
    }
  }

  // The scratch of one worker, for the tile at hand.
  struct Desk {
    std::vector<int> along, across;  // right-hand sides of the columns, of the rows
    std::vector<const T*> v, u;
    std::vector<double*> out;
    std::vector<T*> turned;
    Buffer<T> values;
    std::vector<double> idle;
  };

  Desk desk(Size side) const {
    Desk made;
    made.values = Buffer<T>(vectors * side);
    std::fill_n(made.values.data(), made.values.size(), T(0));
    made.idle.resize(static_cast<std::size_t>(side));
    return made;
  }

  // Right-hand sides that are read in one part and wanted in another.
  void choose(std::vector<int>& chosen, Size from, Size to) const {
    chosen.clear();
    for (int c = 0; c < vectors; ++c) {
      if (!parts || (parts->reads[from * vectors + c] && parts->writes[to * vectors + c])) {
        chosen.push_back(c);
      }
    }
  }

  void tile(const Range& row, const Range& column, Desk& desk) {
    const bool both = row.begin != column.begin;
    choose(desk.along, column.part, row.part);
    choose(desk.across, row.part, column.part);
    const std::size_t count = std::max(desk.along.size(), both ? desk.across.size() : 0);
    desk.v.clear(), desk.u.clear(), desk.out.clear(), desk.turned.clear();
    const Size side = static_cast<Size>(desk.idle.size());
    for (std::size_t c = 0; c < count; ++c) {
      const bool here = c < desk.along.size();
      desk.v.push_back(right.data() + (here ? desk.along[c] : vectors) * apart + column.begin);
      desk.out.push_back(here ? sums.data() + desk.along[c] * n + row.begin : desk.idle.data());
      const int other = c < desk.across.size() ? desk.across[c] : vectors;
      desk.u.push_back(right.data() + other * apart + row.begin);
      desk.turned.push_back(desk.values.data() + static_cast<Size>(c) * side);
    }
    tiles.multiply_stripes({k + row.begin * n + column.begin, n, row.size, column.size,
                            static_cast<int>(count), desk.v.data(), desk.u.data(),
                            desk.out.data(), both ? desk.turned.data() : nullptr});
    for (std::size_t c = 0; c < count && both; ++c) {
      if (c < desk.across.size()) {
        double* to = sums.data() + desk.across[c] * n + column.begin;
        for (int j = 0; j < column.size; ++j) to[j] += static_cast<double>(desk.turned[c][j]);
      }
      std::fill_n(desk.turned[c], round_up(column.size, tiles.lanes), T(0));
    }
  }
};

}  // namespace

template <class T>
void multiply_symmetric(const T* k, Size n, const double* v, int vectors, const RowParts* parts,
                        double* out, Work work) {
  const Tiles<T>& tiles = table<Tiles<T>>();
  const std::vector<double> scales = column_scales(v, n, vectors);
  Stored<T> stored(tiles, k, n, v, vectors, scales.data(), parts);
  const std::vector<Range> ranges =
      pieces(parts ? parts->ends : std::vector<Size>{n}, tiles.lanes);
  Size side = 0;
  for (const Range& range : ranges) side = std::max<Size>(side, round_up(range.size, tiles.lanes));
  std::vector<typename Stored<T>::Desk> desks;
  for (int worker = 0; worker < std::max(1, work.threads); ++worker) {
    desks.push_back(stored.desk(side));
  }
  Tournament(static_cast<Size>(ranges.size()))
      .run(work, [&](Size row, Size rows_end, Size column, Size columns_end, int worker) {
        for (Size i = row; i < rows_end; ++i) {
          if (worker == 0) work.poll->check();
          for (Size j = row == column ? i : column; j < columns_end; ++j) {
            stored.tile(ranges[i], ranges[j], desks[worker]);
          }
        }
      });
  for (Size i = 0; i < n; ++i) {
    for (int c = 0; c < vectors; ++c) out[i * vectors + c] = stored.sums[c * n + i] * scales[c];
  }
}

template void multiply_symmetric<float>(const float*, Size, const double*, int, const RowParts*,
                                        double*, Work);
template void multiply_symmetric<double>(const double*, Size, const double*, int, const RowParts*,
                                         double*, Work);

}  // namespace mercer
