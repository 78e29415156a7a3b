// Sums over the coefficients of all stages of all chains at the rows where they are asked for.
//
// Chains use the same rows of K: pairs of classes, stages. So tiles of K are copied to one place,
// once, and every chain adds up the rows it uses from there.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "svm/path/chain.hpp"
#include "svm/path/expand.hpp"

namespace mercer::svm {
namespace {

constexpr Size kTileRows = 256;

// What some stages of a chain add up.
template <class Entry>
struct Terms {
  std::vector<std::int32_t> places;  // in tiles
  std::vector<Entry> weights;        // kStagesAtOnce for each
  std::vector<Size> ends;            // of the terms in each tile
  Size stages;
  double* sums;
};

// Columns of K next to each other that are judged.
struct Stretch {
  Size column, place, length;
};

// Variables of a box in order of their rows.
std::vector<Size> by_row(const Box& box) {
  std::vector<Size> order(static_cast<std::size_t>(box.n));
  std::iota(order.begin(), order.end(), Size{0});
  const auto before = [&](Size a, Size b) { return box.rows[a] < box.rows[b]; };
  if (box.rows != nullptr && !std::is_sorted(order.begin(), order.end(), before))
    std::stable_sort(order.begin(), order.end(), before);
  return order;
}

template <class Entry>
class Judge {
 public:
  Judge(const Matrix<Entry>& matrix, const std::int64_t* judged, Size count)
      : matrix_(matrix), judged_(judged), count_(count), slot_(static_cast<std::size_t>(matrix.n)) {}

  void look_at(const Chain& chain, const ChainAnswer& answer) {
    const Box& box = chain.box;
    const Size values = static_cast<Size>(chain.stages.size()) * box.n;
    for (Size at = 0, v = 0; at < values; ++at, v = v + 1 == box.n ? 0 : v + 1)
      slot_[row_of(box, v)] |= answer.b[at] != 0.0;
  }

  // Once all chains were looked at: numbers the rows in use.
  void number_rows() {
    for (std::size_t r = 0; r < slot_.size(); ++r) {
      if (slot_[r] == 0) continue;
      slot_[r] = static_cast<std::int32_t>(rows_.size());
      rows_.push_back(matrix_.k + static_cast<Size>(r) * matrix_.ld);
    }
  }

  void add(const Chain& chain, const ChainAnswer& answer) {
    const Size count = static_cast<Size>(chain.stages.size());
    const std::vector<Size> order = by_row(chain.box);
    for (Size s = 0; s < count; s += kStagesAtOnce) {
      terms_.push_back(terms_of(chain.box, order, answer.b + s * chain.box.n,
                                std::min(kStagesAtOnce, count - s)));
      terms_.back().sums = answer.values + s * count_;
    }
  }

  void run(int threads, Poll& poll) const {
    std::vector<Buffer<Entry>> tiles;
    for (int id = 0; id < threads; ++id) tiles.emplace_back(kTileRows * kTileColumns);
    parallel_for(
        (count_ + kTileColumns - 1) / kTileColumns,
        [&](std::int64_t task, int id) {
          add_columns(static_cast<Size>(task) * kTileColumns,
                      tiles[static_cast<std::size_t>(id)].data());
        },
        threads, poll);
  }

 private:
  static std::size_t row_of(const Box& box, Size v) {
    return static_cast<std::size_t>(box.rows == nullptr ? v : box.rows[v]);
  }

  Terms<Entry> terms_of(const Box& box, const std::vector<Size>& order, const double* b,
                        Size stages) const {
    Terms<Entry> terms{{}, {}, {}, stages, nullptr};
    for (const Size v : order) {
      Entry weights[kStagesAtOnce] = {};
      bool used = false;
      for (Size s = 0; s < stages; ++s) {
        weights[s] = static_cast<Entry>(b[s * box.n + v]);
        used |= b[s * box.n + v] != 0.0;
      }
      if (!used) continue;
      const Size place = slot_[row_of(box, v)];
      while (static_cast<Size>(terms.ends.size()) < place / kTileRows)
        terms.ends.push_back(static_cast<Size>(terms.places.size()));
      terms.places.push_back(static_cast<std::int32_t>(place % kTileRows));
      terms.weights.insert(terms.weights.end(), weights, weights + kStagesAtOnce);
    }
    terms.ends.resize((rows_.size() + kTileRows - 1) / kTileRows,
                      static_cast<Size>(terms.places.size()));
    return terms;
  }

  std::vector<Stretch> stretches(Size first, Size last) const {
    std::vector<Stretch> out;
    for (Size t = first; t < last; ++t) {
      if (t > first && judged_[t] == judged_[t - 1] + 1)
        ++out.back().length;
      else
        out.push_back({static_cast<Size>(judged_[t]), t - first, 1});
    }
    return out;
  }

  // Asks for what the next tile will be made of, while there is other work to do.
  static void fetch(const Entry* row, const std::vector<Stretch>& parts) {
    constexpr Size line = 64 / sizeof(Entry);
    for (const Stretch& part : parts)
      for (Size t = 0; t < part.length; t += line)
        __builtin_prefetch(row + part.column + t, 0, 2);
  }

  // From all rows to some of the judged columns, a tile at a time.
  void add_columns(Size first, Entry* tile) const {
    const Size columns = std::min(kTileColumns, count_ - first);
    const std::vector<Stretch> parts = stretches(first, first + columns);
    const auto add_up = table<Expand<Entry>>().add;
    const std::size_t ahead = kTileRows / std::max<std::size_t>(1, terms_.size()) + 1;
    for (std::size_t r = 0, block = 0; r < rows_.size(); r += kTileRows, ++block) {
      const std::size_t rows = std::min<std::size_t>(kTileRows, rows_.size() - r);
      for (std::size_t i = 0; i < rows; ++i)
        for (const Stretch& part : parts)
          std::memcpy(tile + static_cast<Size>(i) * kTileColumns + part.place,
                      rows_[r + i] + part.column,
                      static_cast<std::size_t>(part.length) * sizeof(Entry));
      std::size_t fetched = r + kTileRows;
      const std::size_t end = std::min(rows_.size(), fetched + kTileRows);
      for (const Terms<Entry>& terms : terms_) {
        const Size from = block == 0 ? 0 : terms.ends[block - 1];
        for (std::size_t i = 0; i < ahead && fetched < end; ++i) fetch(rows_[fetched++], parts);
        add_up(tile, columns, terms.places.data() + from,
               terms.weights.data() + from * kStagesAtOnce, terms.ends[block] - from, terms.stages,
               terms.sums + first, count_);
      }
    }
  }

  const Matrix<Entry>& matrix_;
  const std::int64_t* judged_;
  Size count_;
  std::vector<std::int32_t> slot_;   // by row of K: its number among those in use
  std::vector<const Entry*> rows_;   // in use
  std::vector<Terms<Entry>> terms_;
};

bool judged_alike(const Chain& a, const Chain& b) {
  return a.judged_count == b.judged_count &&
         (a.judged == b.judged || std::equal(a.judged, a.judged + a.judged_count, b.judged));
}

}  // namespace

template <class Entry>
void judge_chains(const Matrix<Entry>& matrix, const std::vector<Chain>& chains,
                  const std::vector<ChainAnswer>& answers, int threads, Poll& poll) {
  std::vector<bool> done(chains.size(), false);
  for (std::size_t first = 0; first < chains.size(); ++first) {
    if (done[first]) continue;
    Judge<Entry> judge(matrix, chains[first].judged, chains[first].judged_count);
    std::vector<std::size_t> alike;
    for (std::size_t at = first; at < chains.size(); ++at)
      if (!done[at] && judged_alike(chains[first], chains[at])) alike.push_back(at);
    for (const std::size_t at : alike) judge.look_at(chains[at], answers[at]);
    judge.number_rows();
    for (const std::size_t at : alike) judge.add(chains[at], answers[at]), done[at] = true;
    judge.run(threads, poll);
  }
}

template void judge_chains(const Matrix<float>&, const std::vector<Chain>&,
                           const std::vector<ChainAnswer>&, int, Poll&);
template void judge_chains(const Matrix<double>&, const std::vector<Chain>&,
                           const std::vector<ChainAnswer>&, int, Poll&);

}  // namespace mercer::svm
