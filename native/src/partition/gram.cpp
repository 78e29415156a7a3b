// Partitions on a stored K.
//
// S_c = sum of w_j K_j over members j of cluster c gives all distances: |phi_i - m_c|^2 is
// K_ii - 2 S_c[i] / W_c + q_c / W_c^2 with q_c = sum of w_i S_c[i] over members. Most steps move few
// points, whose rows are then added to and taken from two of the sums: nothing else of K is read.
#include <limits>

#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "partition/passes.hpp"
#include "partition/run.hpp"

namespace mercer::partition {
namespace {

constexpr Size kStrip = 1024;   // columns whose sums, of all clusters, stay in a second-level cache
constexpr Size kNarrow = 256;   // the same where several starts are added up together
constexpr Size kKept = 1 << 19;  // bytes of such a cache for these sums
constexpr Size kAhead = 4;      // rows of K asked for in advance
constexpr Size kPoints = 1024;  // of one pass over all clusters
constexpr Size kJudged = 256;   // of one look for points to move

// Adds the rows of K up by cluster, for several starts that lie `task.n` labels apart. K is read
// once for all of them; strips are as wide as the sums of all clusters stay in the cache.
template <class Entry>
void add_up(const Matrix<Entry>& K, const Task& task, const Label* labels, double* sums,
            const Place& place, Size starts = 1) {
  const Passes<Entry>& loops = table<Passes<Entry>>();
  const Size strip = starts > 1 ? kNarrow : kStrip, all = starts * task.count;
  place.each((task.n + strip - 1) / strip, [&](Size s) {
    const Size first = s * strip, width = std::min(strip, task.n - first);
    for (Size c = 0; c < all; ++c) std::fill_n(sums + c * task.n + first, width, 0.0);
    for (Size j = 0; j < task.n; ++j) {
      const Entry* row = K.row(j) + first;
      if (j + kAhead < task.n)
        for (Size t = 0; t < width; t += 64 / static_cast<Size>(sizeof(Entry)))
          __builtin_prefetch(K.row(j + kAhead) + first + t);
      for (Size r = 0; r < starts; ++r)
        loops.add(row, task.weight[j], width,
                  sums + (r * task.count + labels[r * task.n + j]) * task.n + first);
    }
  });
}

template <class Entry>
class GramEngine {
 public:
  // `sums` (count, n) are those of the labels already.
  GramEngine(const Matrix<Entry>& K, const Task& task, Label* labels, double* sums,
             const Place& place)
      : K_(K),
        task_(task),
        labels_(labels),
        sums_(sums),
        place_(place),
        passes_(table<Passes<Entry>>()),
        on_sums_(table<SumPasses>()),
        within_(task.count),
        next_(task.n) {
    total_ = 0.0;
    for (Size i = 0; i < task.n; ++i) total_ += task.weight[i] * task.diagonal[i];
  }

  void begin() {
    sizes_.count(task_, labels_);
    find_within();
  }

  Size propose() {
    place_.each((task_.n + kPoints - 1) / kPoints, [&](Size part) {
      const Size first = part * kPoints, count = std::min(kPoints, task_.n - first);
      double best[kPoints];
      for (Size t = 0; t < count; ++t) {  // ties: a point stays where it is
        const Label a = labels_[first + t];
        best[t] = slope(a) * sum(a)[first + t] + level(a);
        next_[first + t] = a;
      }
      for (Size c = 0; c < task_.count; ++c)
        on_sums_.nearer(sum(c) + first, slope(c), level(c), static_cast<Label>(c), count, best,
                       next_.data() + first);
    });
    if (place_.stopped()) return 0;
    std::vector<Size> members(task_.count, 0);
    for (const Label c : next_) ++members[c];
    repair(task_, next_, members, [&](double* far) {
      for (Size i = 0; i < task_.n; ++i) far[i] = task_.weight[i] * distance(i, next_[i]);
    });
    changed_.clear();
    for (Size i = 0; i < task_.n; ++i)
      if (next_[i] != labels_[i]) changed_.push_back(i);
    return static_cast<Size>(changed_.size());
  }

  // The labels change places with `next_`, so that doing it twice undoes it.
  void apply() {
    const bool few = static_cast<Size>(changed_.size()) < task_.n / 2;
    if (few)
      place_.each(strips(), [&](Size s) {
        for (const Size j : changed_)
          passes_.shift(K_.row(j) + s * kStrip, task_.weight[j], width(s),
                        sum(labels_[j]) + s * kStrip, sum(next_[j]) + s * kStrip);
      });
    for (const Size j : changed_) std::swap(labels_[j], next_[j]);
    if (!few) add_up(K_, task_, labels_, sums_, place_);
    if (!place_.stopped()) begin();
  }

  void undo() { apply(); }

  void drop() {}

  double value() const {
    double pulled = 0.0;
    for (Size c = 0; c < task_.count; ++c) pulled += within_[c] / sizes_.weight[c];
    return total_ - pulled;
  }

  // Every point is judged by the sums as they are when its turn comes.
  Size sweep() {
    Size moved = 0;
    double best[kJudged];
    for (Size first = 0; first < task_.n && !place_.stopped(); first += kJudged) {
      const Size end = std::min(first + kJudged, task_.n);
      for (Size i = first; i < end;) {
        find_joining(i, end, best);
        for (const Size from = i; i < end; ++i)
          if (best[i - from] < leaving(i) && try_move(i)) break;
        if (i < end) {
          ++moved;
          ++i;
        }
      }
      if (place_.polls) place_.poll->check();
    }
    return moved;
  }

 private:
  Size strips() const { return (task_.n + kStrip - 1) / kStrip; }
  Size width(Size s) const { return std::min(kStrip, task_.n - s * kStrip); }
  double* sum(Size c) { return sums_ + c * task_.n; }
  double slope(Size c) const { return -2.0 / sizes_.weight[c]; }
  double level(Size c) const { return within_[c] / (sizes_.weight[c] * sizes_.weight[c]); }

  double distance(Size i, Size c) {
    const double W = sizes_.weight[c];
    const double d = task_.diagonal[i] - 2.0 * sum(c)[i] / W + within_[c] / (W * W);
    return std::max(d, 0.0);
  }

  // For points of [first, end), the least that joining another cluster costs.
  void find_joining(Size first, Size end, double* best) {
    std::fill_n(best, end - first, std::numeric_limits<double>::infinity());
    for (Size c = 0; c < task_.count; ++c)
      on_sums_.joining(sum(c) + first, slope(c), level(c), sizes_.weight[c], task_.weight + first,
                       task_.diagonal + first, labels_ + first, static_cast<Label>(c), end - first,
                       best);
  }

  // What a point gives back by leaving its cluster, less what a move must gain at least.
  double leaving(Size i) {
    const Label a = labels_[i];
    if (sizes_.members[a] < 2) return -1.0;
    const double W = sizes_.weight[a];
    return W / (W - task_.weight[i]) * distance(i, a) * (1.0 - kGain);
  }

  bool try_move(Size i) {
    const Label a = labels_[i];
    const double w = task_.weight[i], leave = leaving(i);
    double least = leave;
    Label to = a;
    for (Size c = 0; c < task_.count; ++c) {
      if (c == a) continue;
      const double W = sizes_.weight[c], join = W / (W + w) * distance(i, c);
      if (join < least) {
        least = join;
        to = static_cast<Label>(c);
      }
    }
    if (to == a) return false;
    const double own = w * w * task_.diagonal[i];
    within_[a] += own - 2.0 * w * sum(a)[i];
    within_[to] += own + 2.0 * w * sum(to)[i];
    passes_.shift(K_.row(i), w, task_.n, sum(a), sum(to));
    sizes_.move(a, to, w);
    labels_[i] = to;
    return true;
  }

  void find_within() {
    std::fill(within_.begin(), within_.end(), 0.0);
    for (Size i = 0; i < task_.n; ++i)
      within_[labels_[i]] += task_.weight[i] * sum(labels_[i])[i];
  }

  const Matrix<Entry>& K_;
  const Task& task_;
  Label* labels_;
  double* sums_;
  const Place& place_;
  const Passes<Entry>& passes_;
  const SumPasses& on_sums_;
  std::vector<double> within_;
  std::vector<Label> next_;
  std::vector<Size> changed_;
  Sizes sizes_;
  double total_;
};

}  // namespace

template <class Entry>
void divide(const Matrix<Entry>& K, const Task& task, std::vector<Answer>& answers, int threads,
            Poll& poll, Board& board) {
  const Size starts = static_cast<Size>(answers.size()), whole = task.n * task.count;
  const Size fit = kKept / (task.count * kNarrow * static_cast<Size>(sizeof(double)));
  const Size batch = std::min(starts, std::max<Size>(fit, threads));
  Buffer<double> sums(batch * whole);
  for (Size first = 0; first < starts && !poll.stopped(); first += batch) {
    const Size count = std::min(batch, starts - first);
    add_up(K, task, answers[first].labels, sums.data(), Place{threads, true, &poll}, count);
    share(count, threads, poll, [&](Size s, const Place& place) {
      Answer& answer = answers[first + s];
      GramEngine<Entry> engine(K, task, answer.labels, sums.data() + s * whole, place);
      Run<GramEngine<Entry>>(engine, task, answer, place, board)();
    });
  }
}

template void divide(const Matrix<float>&, const Task&, std::vector<Answer>&, int, Poll&, Board&);
template void divide(const Matrix<double>&, const Task&, std::vector<Answer>&, int, Poll&, Board&);

}  // namespace mercer::partition
