// Sums of rows of K, tile by tile.
#include "svm/path/sums.hpp"

#include <algorithm>

#include "runtime/dispatch.hpp"

namespace mercer::svm {
namespace {

constexpr Size kTile = 2048;         // columns whose sums stay in the first cache
constexpr Size kAtOnce = 4;          // rows
constexpr Size kWorthTwo = 1 << 20;  // entries; below, a second thread is not worth waking

}  // namespace

template <class Entry>
void sum_rows(const DescentState<Entry>& level, Moves<Entry> moves, const Worker& worker, double* sums) {
  if (moves.empty()) {
    level.each([&](Size t) { sums[t] = 0.0; });
    return;
  }
  while (moves.rows.size() % kAtOnce != 0) moves.add(moves.rows.back(), 0.0);
  std::vector<Run> tiles;
  for (const Run& run : level.runs)
    for (Size t = 0; t < run.length; t += kTile)
      tiles.push_back({run.column + t, run.local + t, std::min(kTile, run.length - t), run.group});
  const auto accumulate = table<Passes<Entry>>().accumulate;
  const Size count = static_cast<Size>(moves.rows.size());
  worker.share_always(static_cast<Size>(tiles.size()), count * level.count > kWorthTwo,
                      [&](Size task) {
    const Run& tile = tiles[static_cast<std::size_t>(task)];
    double* sum = sums + tile.local;
    std::fill_n(sum, tile.length, 0.0);
    for (Size r = 0; r < count; r += kAtOnce) {
      const Entry* some[kAtOnce];
      for (Size c = 0; c < kAtOnce; ++c)
        some[c] = moves.rows[static_cast<std::size_t>(r + c)] + tile.column;
      accumulate(some, moves.weights.data() + r, tile.length, sum);
    }
  });
}

template void sum_rows(const DescentState<float>&, Moves<float>, const Worker&, double*);
template void sum_rows(const DescentState<double>&, Moves<double>, const Worker&, double*);

}  // namespace mercer::svm
