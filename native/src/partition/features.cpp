// Partitions of rows of features.
//
// Every point keeps an upper bound on the distance to its own mean and a lower bound on those to
// all others (Hamerly). Bounds are stored relative to how far the means have wandered in all, so a
// step that moves means costs nothing per point; most points are then passed over unread.
#include <limits>

#include "runtime/arena.hpp"
#include "runtime/dispatch.hpp"
#include "partition/passes.hpp"
#include "partition/run.hpp"

namespace mercer::partition {
namespace {

using linear::DenseRows;
using linear::SparseRows;

constexpr Size kChunk = 2048;  // points of a task; its changes are kept in order
constexpr Size kStretch = 1 << 16;  // points that are added up apart from others
constexpr Size kMany = 2;      // from n / kMany changes on sums are made anew
constexpr double kUnknown = std::numeric_limits<double>::infinity();

// The few things done with rows, dense or sparse.
struct Dense {
  const DenseRows& rows;
  const FeaturePasses& passes;

  void products(const Size* points, int count, const double* table, Size padded,
                double* out) const {
    const double* x[4];
    for (int r = 0; r < count; ++r) x[r] = rows.row(points[r]);
    passes.products(x, count, rows.width, table, padded, out);
  }
  double dot(Size i, const double* centre) const {
    return passes.dot(rows.row(i), centre, rows.width);
  }
  void add(Size i, double w, double* sum) const {
    const double* x = rows.row(i);
    for (Size t = 0; t < rows.width; ++t) sum[t] += w * x[t];
  }
};

struct Sparse {
  const SparseRows& rows;
  const FeaturePasses& passes;

  void products(const Size* points, int count, const double* table, Size padded,
                double* out) const {
    for (int r = 0; r < count; ++r) {
      const Size at = rows.begin[rows.number(points[r])];
      const Size end = rows.begin[rows.number(points[r]) + 1];
      passes.sparse_product(rows.columns + at, rows.values + at, end - at, table, padded,
                            out + r * padded);
    }
  }
  double dot(Size i, const double* centre) const {
    const Size row = rows.number(i);
    double sum = 0.0;
    for (Size t = rows.begin[row]; t < rows.begin[row + 1]; ++t)
      sum += rows.values[t] * centre[rows.columns[t]];
    return sum;
  }
  void add(Size i, double w, double* sum) const {
    const Size row = rows.number(i);
    for (Size t = rows.begin[row]; t < rows.begin[row + 1]; ++t)
      sum[rows.columns[t]] += w * rows.values[t];
  }
};

template <class Rows>
class FeatureEngine {
 public:
  FeatureEngine(const Rows& rows, Size width, const Task& task, const Answer& answer,
                const Place& place)
      : rows_(rows),
        width_(width),
        padded_((task.count + kPadding - 1) / kPadding * kPadding),
        task_(task),
        labels_(answer.labels),
        place_(place),
        passes_(table<FeaturePasses>()),
        sums_(task.count * width),
        means_(task.count * width),
        table_(width * padded_),
        norms_(task.count),
        apart_(task.count),
        wandered_(task.count, 0.0),
        upper_(task.n, kUnknown),
        lower_(task.n, -kUnknown),
        next_(task.n),
        chunks_((task.n + kChunk - 1) / kChunk) {
    std::fill_n(table_.data(), table_.size(), 0.0);
    std::fill_n(means_.data(), means_.size(), 0.0);
    total_ = 0.0;
    for (Size i = 0; i < task.n; ++i) total_ += task.weight[i] * task.diagonal[i];
    if (answer.means != nullptr) begin_near(answer.means);
  }

  void begin() {
    sizes_.count(task_, labels_);
    add_up();
    find_means();
  }

  Size propose() {
    find_apart();
    place_.each(static_cast<Size>(chunks_.size()), [&](Size chunk) { nearest(chunk); });
    if (place_.stopped()) return 0;
    std::vector<Size> members = sizes_.members;
    changed_.clear();
    for (const std::vector<Size>& chunk : chunks_)
      for (const Size i : chunk) {
        changed_.push_back(i);
        --members[labels_[i]];
        ++members[next_[i]];
      }
    if (std::count(members.begin(), members.end(), 0) > 0) fill_empty(members);
    return static_cast<Size>(changed_.size());
  }

  // The labels change places with `next_`, so that doing it twice undoes it.
  void apply() {
    const bool few = static_cast<Size>(changed_.size()) < task_.n / kMany;
    for (const Size i : changed_) {
      const double w = task_.weight[i];
      if (few) {
        rows_.add(i, -w, sum(labels_[i]));
        rows_.add(i, w, sum(next_[i]));
        sizes_.move(labels_[i], next_[i], w);
      }
      std::swap(labels_[i], next_[i]);
    }
    if (!few) return begin();
    find_means();
  }

  void undo() {
    drop();
    apply();
  }

  void drop() {
    for (const Size i : changed_) upper_[i] = kUnknown;  // bounds belong to the other label
  }

  double value() const {
    double pulled = 0.0;
    for (Size c = 0; c < task_.count; ++c) pulled += norms_[c] * sizes_.weight[c];
    return total_ - pulled;
  }

  Size sweep() {
    Size moved = 0;
    std::vector<double> products(padded_);
    find_lightest();
    for (Size i = 0; i < task_.n && !place_.stopped(); ++i) {
      if (may_gain(i)) moved += try_move(i, products.data());
      if (i % kChunk == 0 && place_.polls) place_.poll->check();
    }
    return moved;
  }

 private:
  double* sum(Size c) { return sums_.data() + c * width_; }
  double* mean(Size c) { return means_.data() + c * width_; }

  // Gives rows to the nearest of some means; the bounds hold on from there.
  void begin_near(const double* means) {
    std::fill_n(labels_, task_.n, 0);
    sizes_.count(task_, labels_);
    for (Size c = 0; c < task_.count; ++c) {
      std::copy_n(means + c * width_, width_, mean(c));
      for (Size t = 0; t < width_; ++t) table_[t * padded_ + c] = mean(c)[t];
      norms_[c] = passes_.dot(mean(c), mean(c), width_);
    }
    propose();
    for (const Size i : changed_) labels_[i] = next_[i];
  }

  // Sums over each cluster: stretches of rows apart, then in order, the same for any threads.
  void add_up() {
    const Size size = sums_.size();  // wide sums are not held several times
    const Size stretch = size <= kStretch ? kStretch : task_.n;
    const Size stretches = (task_.n + stretch - 1) / stretch;
    Buffer<double> parts(stretches * size);
    place_.each(stretches, [&](Size s) {
      double* part = parts.data() + s * size;
      std::fill_n(part, size, 0.0);
      const Size end = std::min(task_.n, (s + 1) * stretch);
      for (Size i = s * stretch; i < end; ++i)
        rows_.add(i, task_.weight[i], part + labels_[i] * width_);
    });
    std::fill_n(sums_.data(), size, 0.0);
    for (Size s = 0; s < stretches && !place_.stopped(); ++s)
      for (Size t = 0; t < size; ++t) sums_[t] += parts[s * size + t];
  }

  // Means from sums; what they moved loosens all bounds.
  void find_means() {
    double farthest = 0.0;
    for (Size c = 0; c < task_.count; ++c) farthest = std::max(farthest, find_mean(c));
    loosened_ += farthest;
  }

  double find_mean(Size c) {
    const double W = sizes_.weight[c];
    const double* from = sum(c);
    double* to = mean(c);
    double step = 0.0;
    for (Size t = 0; t < width_; ++t) {
      const double now = from[t] / W, by = now - to[t];
      step += by * by;
      to[t] = now;
      table_[t * padded_ + c] = now;
    }
    norms_[c] = passes_.dot(to, to, width_);
    step = std::sqrt(step);
    wandered_[c] += step;
    return step;
  }

  // Half the distance of each mean to the nearest other: who is closer than that, is home.
  void find_apart() {
    std::fill(apart_.begin(), apart_.end(), kUnknown);
    for (Size a = 0; a < task_.count; ++a)
      for (Size b = 0; b < a; ++b) {
        const double d = norms_[a] + norms_[b] - 2.0 * passes_.dot(mean(a), mean(b), width_);
        const double half = 0.5 * std::sqrt(std::max(d, 0.0));
        apart_[a] = std::min(apart_[a], half);
        apart_[b] = std::min(apart_[b], half);
      }
  }

  double own_distance(Size i) {
    const Label a = labels_[i];
    const double d = task_.diagonal[i] - 2.0 * rows_.dot(i, mean(a)) + norms_[a];
    return std::sqrt(std::max(d, 0.0));
  }

  // Whether bounds, tightened once, leave open that another mean is nearer.
  bool open(Size i, double at_least) {
    const Label a = labels_[i];
    if (upper_[i] + wandered_[a] <= at_least) return false;
    if (upper_[i] == kUnknown) return true;
    const double d = own_distance(i);
    upper_[i] = d - wandered_[a];
    return d > at_least;
  }

  void nearest(Size chunk) {
    std::vector<Size>& changed = chunks_[chunk];
    changed.clear();
    std::vector<double> products(4 * padded_);
    Size waiting[4];
    int count = 0;
    const Size end = std::min(task_.n, (chunk + 1) * kChunk);
    for (Size i = chunk * kChunk; i < end; ++i) {
      if (open(i, std::max(apart_[labels_[i]], lower_[i] - loosened_))) waiting[count++] = i;
      if (count == 0 || (count < 4 && i + 1 < end)) continue;
      rows_.products(waiting, count, table_.data(), padded_, products.data());
      for (int r = 0; r < count; ++r)
        if (look(waiting[r], products.data() + r * padded_)) changed.push_back(waiting[r]);
      count = 0;
    }
  }

  // Finds the nearest mean and both bounds; ties: a point stays where it is.
  bool look(Size i, const double* products) {
    const Label a = labels_[i];
    Label to = a;
    double best = norms_[a] - 2.0 * products[a], second = kUnknown;
    for (Size c = 0; c < task_.count; ++c) {
      if (c == a) continue;
      const double d = norms_[c] - 2.0 * products[c];
      if (d < best) {
        second = best;
        best = d;
        to = static_cast<Label>(c);
      } else {
        second = std::min(second, d);
      }
    }
    upper_[i] = std::sqrt(std::max(task_.diagonal[i] + best, 0.0)) - wandered_[to];
    lower_[i] = std::sqrt(std::max(task_.diagonal[i] + second, 0.0)) + loosened_;
    next_[i] = to;
    return to != a;
  }

  void fill_empty(std::vector<Size>& members) {
    std::vector<Label> next(labels_, labels_ + task_.n);
    for (const Size i : changed_) next[i] = next_[i];
    repair(task_, next, members, [&](double* far) {
      for (Size i = 0; i < task_.n; ++i) {
        const double d =
            task_.diagonal[i] - 2.0 * rows_.dot(i, mean(next[i])) + norms_[next[i]];
        far[i] = task_.weight[i] * std::max(d, 0.0);
      }
    });
    changed_.clear();
    for (Size i = 0; i < task_.n; ++i) {
      if (next[i] != labels_[i]) changed_.push_back(i);
      if (next[i] != next_[i]) upper_[i] = kUnknown;
      next_[i] = next[i];
    }
  }

  // Whether bounds leave open that a move of this point lowers the objective.
  bool may_gain(Size i) {
    const Label a = labels_[i];
    if (sizes_.members[a] < 2) return false;
    const double w = task_.weight[i], W = sizes_.weight[a];
    // sqrt(lightest / (lightest + w)) lower >= sqrt(W / (W - w)) upper rules every move out
    const double ratio = std::sqrt(lightest_ / (lightest_ + w) * (W - w) / W);
    return open(i, ratio * std::max(lower_[i] - loosened_, 0.0));
  }

  Size try_move(Size i, double* products) {
    rows_.products(&i, 1, table_.data(), padded_, products);
    const Label a = labels_[i];
    look(i, products);
    const double w = task_.weight[i], W = sizes_.weight[a];
    const auto squared = [&](Size c) {
      return std::max(task_.diagonal[i] + norms_[c] - 2.0 * products[c], 0.0);
    };
    // `look` bounded for the nearest mean, which need not be the one the point stays with
    upper_[i] = std::sqrt(squared(a)) - wandered_[a];
    if (next_[i] != a) lower_[i] = std::sqrt(squared(next_[i])) + loosened_;
    double least = W / (W - w) * squared(a) * (1.0 - kGain);
    Label to = a;
    for (Size c = 0; c < task_.count; ++c) {
      if (c == a) continue;
      const double join = sizes_.weight[c] / (sizes_.weight[c] + w) * squared(c);
      if (join < least) {
        least = join;
        to = static_cast<Label>(c);
      }
    }
    if (to == a) return 0;
    rows_.add(i, -w, sum(a));
    rows_.add(i, w, sum(to));
    sizes_.move(a, to, w);
    loosened_ += std::max(find_mean(a), find_mean(to));
    labels_[i] = to;
    upper_[i] = kUnknown;
    find_lightest();
    return 1;
  }

  void find_lightest() {
    lightest_ = *std::min_element(sizes_.weight.begin(), sizes_.weight.end());
  }

  const Rows rows_;
  const Size width_, padded_;
  const Task& task_;
  Label* labels_;
  const Place& place_;
  const FeaturePasses& passes_;
  Buffer<double> sums_, means_, table_;
  std::vector<double> norms_, apart_, wandered_, upper_, lower_;
  double loosened_ = 0.0;  // how far any mean may have wandered, over all steps
  std::vector<Label> next_;
  std::vector<Size> changed_;
  std::vector<std::vector<Size>> chunks_;
  Sizes sizes_;
  double total_, lightest_ = 0.0;
};

template <class Rows>
void divide_rows(const Rows& rows, Size width, const Task& task, std::vector<Answer>& answers,
                 int threads, Poll& poll, Board& board) {
  const Size starts = static_cast<Size>(answers.size());
  share(starts, threads, poll, [&](Size s, const Place& place) {
    FeatureEngine<Rows> engine(rows, width, task, answers[s], place);
    Run<FeatureEngine<Rows>>(engine, task, answers[s], place, board)();
  });
}

}  // namespace

template <>
void divide(const DenseRows& rows, const Task& task, std::vector<Answer>& answers, int threads,
            Poll& poll, Board& board) {
  divide_rows(Dense{rows, table<FeaturePasses>()}, rows.width, task, answers, threads, poll, board);
}

template <>
void divide(const SparseRows& rows, const Task& task, std::vector<Answer>& answers, int threads,
            Poll& poll, Board& board) {
  divide_rows(Sparse{rows, table<FeaturePasses>()}, rows.width, task, answers, threads, poll, board);
}

}  // namespace mercer::partition
