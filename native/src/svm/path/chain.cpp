// A walk along stages that share rows, matrix and linear term: for the price of the first, nearly.
//
// From one stage to the next either b stays, and F with it, or both are scaled with the bounds, where
// most support vectors are at theirs. F is computed anew, in double precision, once what rounding did
// to it could be seen in the tolerance.
#include "svm/path/chain.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "svm/frame.hpp"
#include "svm/path/sums.hpp"

namespace mercer::svm {
namespace {

constexpr double kMostAtBound = 0.5;  // of the support vectors: with more, b is scaled
constexpr double kRounding = 1e-12;   // relative: a sum this far off needs no repair
constexpr double kSeen = 0.05;        // of the tolerance: an error of F that is worth F anew

constexpr double kUnknown = 0.0;  // instead of a ratio

template <class Entry>
class Walk {
 public:
  Walk(const Matrix<Entry>& matrix, const Chain& chain, const ChainAnswer& answer,
       const Worker& worker)
      : chain_(chain),
        box_(chain.box),
        answer_(answer),
        worker_(worker),
        frame_(matrix, chain.box),
        level_(frame_.level),
        whole_(7 * level_.size) {
    double* at = whole_.data();
    std::fill_n(at, 7 * level_.size, 0.0);
    for (double** part : {&linear_, &lower_, &upper_, &kink_, &shift_, &diag_, &next_}) {
      *part = at;
      at += level_.size;
    }
    const auto given = [](const double* values, std::int32_t v) {
      return values == nullptr ? 0.0 : values[v];
    };
    frame_.each([&](Size t, std::int32_t v, Size r) {
      level_.origin[t] = v;
      diag_[t] = static_cast<double>(matrix.k[r * (matrix.ld + 1)]);
      if (v < 0) return;
      linear_[t] = box_.gradient[v];
      largest_linear_ = std::max(largest_linear_, std::abs(linear_[t]));
      lower_[t] = box_.lower[v];
      upper_[t] = box_.upper[v];
      kink_[t] = given(box_.kink, v);
      shift_[t] = given(box_.shift, v);
    });
  }

  void run(double tol, std::int64_t max_iter, Scratch<Entry>& scratch) {
    frame_.give_matrix(worker_);
    scratch.finish = Finish{};
    if (worker_.stopped() && frame_.copied()) return;  // it may be half made
    const Size count = static_cast<Size>(chain_.stages.size());
    for (Size s = 0; s < count && !worker_.stopped(); ++s) {
      begin(chain_.stages[static_cast<std::size_t>(s)], tol);
      worker_.unit = 1.0 / scale_;
      // a stage takes about as many steps as the one it begins at: a smaller matrix pays at once
      const Size from = chain_.stages[static_cast<std::size_t>(s)].from;
      const std::int64_t expected = from < 0 ? 0 : answer_.iterations[from];
      const Descent done =
          solve_level(level_, tol * scale_, max_iter, worker_, scratch, 0, expected);
      since_ += done.steps;
      answer_.iterations[s] = done.steps;
      answer_.violation[s] = worker_.stopped() ? kNever : done.gap / scale_;
      keep(s);
    }
  }

 private:
  // The box of a stage, b of another, and the F that belongs to it. Places without a variable have
  // an empty box, so that nothing moves there.
  void begin(const Stage& stage, double tol) {
    const double grown = choose_start(stage);
    const bool reshaped = !begun_ || (box_.shift != nullptr && stage.shift != shift_factor_);
    const double bound = scale_ * stage.bound, kink = scale_ * stage.kink;
    for (Size t = 0; t < level_.size; ++t) {
      level_.lower[t] = bound * lower_[t];
      level_.upper[t] = bound * upper_[t];
      level_.kink[t] = kink * kink_[t];
    }
    if (reshaped)
      for (Size t = 0; t < level_.size; ++t) {
        level_.shift[t] = stage.shift * shift_[t];
        level_.diag[t] = static_cast<Entry>(diag_[t] + level_.shift[t]);
      }
    for (Size t = 0; t < level_.size; ++t) level_.refresh(t, level_.b[t]);
    shift_factor_ = stage.shift;
    begun_ = true;
    growth_ *= std::max(grown, 1.0);
    const double error = static_cast<double>(std::numeric_limits<Entry>::epsilon()) * size() *
                         growth_ * std::sqrt(1.0 + static_cast<double>(since_));
    if (grown == kUnknown || reshaped || error > kSeen * tol * scale_)
      compute_gradient();
    else if (grown != 1.0)
      scale_gradient(grown);
    level_.trail = Trail{};
  }

  // Puts b, in the units of the level, inside the box of the stage. Returns what b was multiplied
  // with; kUnknown where it is not a multiple of what it was.
  double choose_start(const Stage& stage) {
    const bool first = stage.from < 0;
    const double* from = first ? box_.start : answer_.b + stage.from * box_.n;
    const double before =
        first ? stage.bound : chain_.stages[static_cast<std::size_t>(stage.from)].bound;
    const double ratio =
        !first && mostly_at_bound(from, before) ? stage.bound / before : 1.0;
    level_.each_variable([&](Size t) {
      const double low = stage.bound * lower_[t], high = stage.bound * upper_[t];
      const double old = from[level_.origin[t]];
      double value = ratio * old;
      if (ratio != 1.0 && old != 0.0 && old == before * lower_[t]) value = low;
      if (ratio != 1.0 && old != 0.0 && old == before * upper_[t]) value = high;
      next_[t] = std::clamp(value, low, high);
    });
    repair_sums(stage);
    if (first) choose_scale();
    bool multiple = begun_;
    for (Size t = 0; t < level_.size; ++t) {
      const double value = scale_ * next_[t];
      multiple &= std::abs(value - ratio * level_.b[t]) <= kRounding * std::abs(value);
      level_.b[t] = value;
    }
    return multiple ? ratio : kUnknown;
  }

  bool mostly_at_bound(const double* b, double bound) const {
    Size used = 0, at = 0;
    for (Size v = 0; v < box_.n; ++v) {
      const bool there = (b[v] == bound * box_.lower[v]) | (b[v] == bound * box_.upper[v]);
      used += b[v] != 0.0;
      at += there & (b[v] != 0.0);
    }
    return static_cast<double>(at) > kMostAtBound * static_cast<double>(used);
  }

  // fn(t) for every place of a group.
  template <class F>
  void each_of(Size group, F&& fn) const {
    for (const Run& run : level_.runs)
      if (run.group == group)
        for (Size t = run.local; t < run.local + run.length; ++t) fn(t);
  }

  // Adds what is missing to the sum of each group, in proportion to the room there is.
  void repair_sums(const Stage& stage) {
    for (Size g = 0; g < chain_.groups; ++g) {
      const double total = stage.total * chain_.totals[g];
      double sum = 0.0, size = std::abs(total);
      each_of(g, [&](Size t) {
        sum += next_[t];
        size += std::abs(next_[t]);
      });
      const double missing = total - sum;
      if (!(std::abs(missing) > kRounding * size)) continue;
      const auto room = [&](Size t) {
        const double left = stage.bound * (missing > 0 ? upper_[t] : lower_[t]) - next_[t];
        return std::isfinite(left) ? left : missing;  // places without a variable have none
      };
      double all = 0.0;
      each_of(g, [&](Size t) { all += room(t); });
      if (all == 0.0) continue;
      const double share = std::min(1.0, missing / all);
      each_of(g, [&](Size t) { next_[t] += share * room(t); });
    }
  }

  // Powers of two are exact: F of the size of one neither over- nor underflows when squared.
  void choose_scale() {
    if (sizeof(Entry) != sizeof(float)) return;
    double largest = largest_linear_;
    if (largest == 0.0) {  // all of F comes from b
      double sum = 0.0, diagonal = 0.0;
      for (Size t = 0; t < level_.size; ++t) {
        sum += std::abs(next_[t]);
        diagonal = std::max(diagonal, std::abs(diag_[t]));
      }
      largest = sum * diagonal;
    }
    if (largest == 0.0 || !std::isfinite(largest)) return;
    scale_ = std::ldexp(1.0, std::clamp(-std::ilogb(largest), -300, 300));
  }

  // The largest of what F is the difference of, or F itself, in the units of the level.
  double size() const {
    double largest = scale_ * largest_linear_;
    level_.each_variable([&](Size t) {
      const double middle = level_.middle[static_cast<std::size_t>(level_.group_of(t))];
      largest = std::max(largest, std::abs(static_cast<double>(level_.f[t]) + middle));
    });
    return largest;
  }

  // F = p - ratio (p - F): of b that were all multiplied with it.
  void scale_gradient(double ratio) {
    Buffer<double> f(level_.size);
    level_.each_variable([&](Size t) {
      const double middle = level_.middle[static_cast<std::size_t>(level_.group_of(t))];
      const double p = scale_ * linear_[t];
      f[t] = p - ratio * (p - static_cast<double>(level_.f[t]) - middle);
    });
    centre(f);
  }

  // F = p - (K + diag(shift)) b, less the middle of what violates.
  void compute_gradient() {
    Moves<Entry> moves;
    level_.each_variable([&](Size t) {
      if (level_.b[t] != 0.0) moves.add(level_.row(t), level_.b[t]);
    });
    Buffer<double> f(level_.size);
    sum_rows(level_, std::move(moves), worker_, f.data());
    level_.each([&](Size t) {
      f[t] = scale_ * linear_[t] - f[t] - level_.shift[t] * level_.b[t];
    });
    centre(f);
    since_ = 0;
    growth_ = 1.0;
  }

  void centre(const Buffer<double>& f) {
    std::vector<double> top(level_.middle.size(), -kNever), bottom(level_.middle.size(), kNever);
    level_.each_variable([&](Size t) {
      const auto g = static_cast<std::size_t>(level_.group_of(t));
      top[g] = std::max(top[g], f[t] + static_cast<double>(level_.up[t]));
      bottom[g] = std::min(bottom[g], f[t] + static_cast<double>(level_.low[t]));
    });
    for (std::size_t g = 0; g < level_.middle.size(); ++g) {
      const double middle = 0.5 * (top[g] + bottom[g]);
      level_.middle[g] = std::isfinite(middle) ? middle : 0.0;
    }
    level_.each_variable([&](Size t) {
      const auto g = static_cast<std::size_t>(level_.group_of(t));
      level_.f[t] = static_cast<Entry>(f[t] - level_.middle[g]);
    });
  }

  void keep(Size s) {
    double *b = answer_.b + s * box_.n, *gradient = answer_.gradient + s * box_.n;
    const double bound = chain_.stages[static_cast<std::size_t>(s)].bound, unit = 1.0 / scale_;
    level_.snap();
    level_.each_variable([&](Size t) {
      const std::int32_t v = level_.origin[t];
      b[v] = std::clamp(unit * level_.b[t], bound * lower_[t], bound * upper_[t]);
      const double middle = level_.middle[static_cast<std::size_t>(level_.group_of(t))];
      gradient[v] = unit * (static_cast<double>(level_.f[t]) + middle);
    });
    for (Size g = 0; g < chain_.groups; ++g) answer_.offsets[s * chain_.groups + g] = offset(g);
  }

  // The mean of F over free variables, held between the two sides; their middle where none is free.
  double offset(Size group) const {
    double top = -kNever, bottom = kNever, sum = 0.0;
    Size free = 0;
    each_of(group, [&](Size t) {
      const double f = static_cast<double>(level_.f[t]);
      const double rising = f + static_cast<double>(level_.up[t]);
      const double falling = f + static_cast<double>(level_.low[t]);
      top = std::max(top, rising), bottom = std::min(bottom, falling);
      if (rising == falling) sum += rising, ++free;
    });
    const double middle = level_.middle[static_cast<std::size_t>(group)];
    double found = 0.0;
    if (free > 0)
      found = std::clamp(sum / static_cast<double>(free), std::min(top, bottom),
                         std::max(top, bottom));
    else if (std::isfinite(top) && std::isfinite(bottom))
      found = 0.5 * (top + bottom);
    else if (std::isfinite(top) || std::isfinite(bottom))
      found = std::isfinite(top) ? top : bottom;
    else
      return 0.0;
    return (found + middle) / scale_;
  }

  const Chain& chain_;
  const Box& box_;
  const ChainAnswer& answer_;
  Worker worker_;
  Frame<Entry> frame_;
  DescentState<Entry>& level_;
  // The whole box, the diagonal of K, and the next b, place by place: 0 where there is no variable.
  Buffer<double> whole_;
  double *linear_, *lower_, *upper_, *kink_, *shift_, *diag_, *next_;
  double largest_linear_ = 0.0;
  double scale_ = 1.0;
  bool begun_ = false;
  double shift_factor_ = 1.0;
  // What happened to F since it was computed: steps, and what it was multiplied with.
  std::int64_t since_ = 0;
  double growth_ = 1.0;
};

}  // namespace

template <class Entry>
void solve_chains(const Matrix<Entry>& matrix, const std::vector<Chain>& chains,
                  std::vector<ChainAnswer>& answers, double tol, std::int64_t max_iter,
                  int threads, Poll& poll, Progress& progress) {
  std::vector<std::size_t> order(chains.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return chains[a].box.n > chains[b].box.n;
  });
  std::vector<Scratch<Entry>> scratch(static_cast<std::size_t>(threads));
  parallel_for(
      static_cast<std::int64_t>(order.size()),
      [&](std::int64_t task, int id) {
        const std::size_t at = order[static_cast<std::size_t>(task)];
        const Worker worker{poll, progress, id, 1};
        Walk<Entry>(matrix, chains[at], answers[at], worker)
            .run(tol, max_iter, scratch[static_cast<std::size_t>(id)]);
      },
      threads, poll);
  if (!poll.stopped()) judge_chains(matrix, chains, answers, threads, poll);
}

template void solve_chains(const Matrix<float>&, const std::vector<Chain>&,
                           std::vector<ChainAnswer>&, double, std::int64_t, int, Poll&,
                           Progress&);
template void solve_chains(const Matrix<double>&, const std::vector<Chain>&,
                           std::vector<ChainAnswer>&, double, std::int64_t, int, Poll&,
                           Progress&);

}  // namespace mercer::svm
