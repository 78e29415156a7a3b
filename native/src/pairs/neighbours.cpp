// A heap for every row, and the rule which entries of a tile are worth looking at.
#include "pairs/neighbours.hpp"

#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "runtime/pool.hpp"

namespace mercer {
namespace {

constexpr Size kSortedRows = 256;  // rows of one task of the last step

// Ordered by key, then by column: no two are equal, so the chosen ones do not depend on the order
// in which tiles are made.
struct Candidate {
  double key;
  std::int32_t column;

  bool operator<(const Candidate& other) const {
    return key < other.key || (key == other.key && column < other.column);
  }
};

double squared_distance(const double* x, const double* y, Size features) {
  double sums[4] = {};
  Size k = 0;
  for (; k + 4 <= features; k += 4) {
    for (Size l = 0; l < 4; ++l) sums[l] += (x[k + l] - y[k + l]) * (x[k + l] - y[k + l]);
  }
  for (; k < features; ++k) sums[0] += (x[k] - y[k]) * (x[k] - y[k]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T>
class Search {
 public:
  Search(Pairs<T>& pairs, const NearestTask& task, int threads)
      : pairs_(pairs),
        task_(task),
        count_(task.count),
        heaps_(task.set.count * task.count),
        sizes_(static_cast<std::size_t>(task.set.count), 0),
        limits_(static_cast<std::size_t>(task.set.count), std::numeric_limits<T>::infinity()),
        locks_(static_cast<std::size_t>((task.set.count + kTile - 1) / kTile)),
        turned_(static_cast<std::size_t>(std::max(1, threads))) {
    if (task.exact) slack_ = double(2 * task.exact->features + 16) * kUnit;
  }

  void see(const Seen<T>& tile) {
    look(tile);
    if (!task_.upper || tile.row == tile.column) return;
    Buffer<T>& turned = turned_[static_cast<std::size_t>(tile.worker)];
    if (turned.size() == 0) turned = Buffer<T>(kTile * kTile);
    pairs_.tiles().transpose(tile.values, tile.ld, tile.rows, tile.columns, turned.data(), kTile);
    look({tile.column, tile.row, tile.columns, tile.rows, turned.data(), kTile, tile.worker});
  }

  void write(Size row, Size* index, double* key) {
    Candidate* heap = heaps_.data() + row * count_;
    const int size = sizes_[static_cast<std::size_t>(row)];
    std::sort_heap(heap, heap + size);
    for (int i = 0; i < count_; ++i) {
      index[row * count_ + i] = i < size ? heap[i].column : -1;
      key[row * count_ + i] = i < size ? heap[i].key : std::numeric_limits<double>::infinity();
    }
  }

 private:
  static constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

  // All rows of a tile; one tile at a time for each group of rows.
  void look(const Seen<T>& tile) {
    const std::lock_guard<std::mutex> guard(locks_[static_cast<std::size_t>(tile.row / kTile)]);
    std::int32_t found[kTile + 64];
    for (int r = 0; r < tile.rows; ++r) {
      const Size row = tile.row + r;
      const T* values = tile.values + r * tile.ld;
      T& limit = limits_[static_cast<std::size_t>(row)];
      const int some = pairs_.tiles().select(values, tile.columns, limit, found);
      for (int i = 0; i < some; ++i) {
        const Size column = tile.column + found[i];
        if (task_.itself && column == task_.set.begin + row) continue;
        if (values[found[i]] <= limit) consider(row, column, values[found[i]], limit);
      }
    }
  }

  void consider(Size row, Size column, T value, T& limit) {
    Candidate* heap = heaps_.data() + row * count_;
    int& size = sizes_[static_cast<std::size_t>(row)];
    const Candidate found{key_of(row, column, value), static_cast<std::int32_t>(column)};
    if (!(found.key < std::numeric_limits<double>::infinity())) return;
    if (size < count_) {
      heap[size++] = found;
      std::push_heap(heap, heap + size);
    } else if (found < heap[0]) {
      std::pop_heap(heap, heap + size);
      heap[size - 1] = found;
      std::push_heap(heap, heap + size);
    } else {
      return;
    }
    if (size == count_) limit = limit_for(row, heap[0].key);
  }

  double key_of(Size row, Size column, T value) const {
    if (!task_.exact) return value;
    const Size d = task_.exact->features;
    return squared_distance(task_.exact->x + (task_.set.begin + row) * d,
                            task_.exact->y + column * d, d);
  }

  // The largest entry that a column no farther than `key` can have in a tile. Rounding moves an
  // entry by a multiple of |x|^2 + |y|^2, and |y| <= |x| + |x - y|.
  T limit_for(Size row, double key) const {
    if (!task_.exact) return static_cast<T>(key);
    const double norm = task_.exact->norms[task_.set.begin + row];
    const double other = std::sqrt(norm) + std::sqrt(key);
    const double limit = key + slack_ * (norm + other * other);
    return std::nextafter(static_cast<T>(limit), std::numeric_limits<T>::infinity());
  }

  Pairs<T>& pairs_;
  const NearestTask& task_;
  int count_;
  double slack_ = 0;
  Buffer<Candidate> heaps_;
  std::vector<int> sizes_;
  std::vector<T> limits_;
  std::vector<std::mutex> locks_;
  std::vector<Buffer<T>> turned_;
};

}  // namespace

template <class T>
void nearest(Pairs<T>& pairs, const Externals<T>& externals, const NearestTask& task, Size* index,
             double* key, Work work) {
  Search<T> search(pairs, task, work.threads);
  pairs.visit(task.set, externals, task.upper, [&](const Seen<T>& tile) { search.see(tile); },
              work);
  const Size rows = task.set.count;
  const auto write = [&](Size part, int) {
    const Size end = std::min(rows, (part + 1) * kSortedRows);
    for (Size row = part * kSortedRows; row < end; ++row) search.write(row, index, key);
  };
  parallel_for((rows + kSortedRows - 1) / kSortedRows, write, work.threads, *work.poll);
}

template void nearest(Pairs<float>&, const Externals<float>&, const NearestTask&, Size*, double*,
                      Work);
template void nearest(Pairs<double>&, const Externals<double>&, const NearestTask&, Size*, double*,
                      Work);

}  // namespace mercer
