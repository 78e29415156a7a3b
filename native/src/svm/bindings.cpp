// Python's view of box programmes: shapes are checked here, the interpreter lock is released.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/bindings.hpp"
#include "svm/path/chain.hpp"

namespace mercer::svm {
namespace {

using Numbers = VectorOf<double>;
using Indices = VectorOf<std::int64_t>;

// Reads the tuples of a box and keeps their arrays alive.
class Reader {
 public:
  Box read_box(nb::handle given, Size n) {
    const auto parts = cast_to<nb::tuple>(given, "a box is a tuple");
    require(nb::len(parts) == 8, "a box is a tuple of eight");
    return read(parts, n);
  }

  // A box of eight parts, then totals, stages and judged rows.
  Chain read_chain(nb::handle given, Size n) {
    const auto parts = cast_to<nb::tuple>(given, "a chain is a tuple");
    require(nb::len(parts) == 11, "a chain is a tuple of eleven");
    Chain chain{read(parts, n), nullptr, 0, {}, nullptr, 0};
    chain.groups = extent(cast_to<Numbers>(parts[8], kNumbers), 0);
    chain.totals = numbers(parts[8], chain.groups);
    require_groups(chain);
    for (Size g = 0; g < chain.groups; ++g)
      require(std::isfinite(chain.totals[g]), "sums must be finite");
    for (const nb::handle one : cast_to<nb::sequence>(parts[9], "stages are a sequence")) {
      const auto [bound, kink, shift, total, from] =
          cast_to<std::tuple<double, double, double, double, std::int64_t>>(
              one, "a stage is four numbers and the number of another stage");
      require(from < static_cast<std::int64_t>(chain.stages.size()),
              "a stage begins at an earlier one");
      for (const double factor : {bound, kink, shift, total})
        require(std::isfinite(factor) && factor >= 0.0, "factors are finite and not negative");
      require(bound > 0.0, "bounds have a positive factor");
      chain.stages.push_back({bound, kink, shift, total, static_cast<Size>(from)});
    }
    chain.judged_count = extent(cast_to<Indices>(parts[10], kIndices), 0);
    chain.judged = indices(parts[10], chain.judged_count);
    for (Size t = 0; t < chain.judged_count; ++t)
      require(chain.judged[t] >= 0 && chain.judged[t] < n, "judged rows must be those of K");
    return chain;
  }

 private:
  // Sums and groups are looked up by number: each number below the count must be there.
  static void require_groups(const Chain& chain) {
    const auto count = static_cast<std::size_t>(chain.groups);
    if (chain.box.group == nullptr || chain.box.n == 0)
      return require(count == 1, "without groups there is one sum");
    std::vector<bool> seen(count, false);
    for (Size t = 0; t < chain.box.n; ++t) {
      const std::int64_t g = chain.box.group[t];
      require(g >= 0 && g < chain.groups, "unknown group");
      seen[static_cast<std::size_t>(g)] = true;
    }
    require(std::find(seen.begin(), seen.end(), false) == seen.end(), "a group is empty");
  }

  // Comparisons with NaN are false, so that it would pass for a bound that is reached.
  static void require_numbers(const Box& box) {
    for (Size t = 0; t < box.n; ++t) {
      require(box.lower[t] <= box.upper[t], "lower bounds must not be above upper ones");
      require(box.kink == nullptr || box.kink[t] >= 0.0, "kinks must not be negative");
      require(box.shift == nullptr || std::isfinite(box.shift[t]), "shifts must be finite");
    }
  }

  Box read(const nb::tuple& parts, Size n) {
    Box box{};
    box.n = extent(cast_to<Numbers>(parts[0], kNumbers), 0);
    box.gradient = numbers(parts[0], box.n);
    box.start = numbers(parts[1], box.n);
    box.lower = numbers(parts[2], box.n);
    box.upper = numbers(parts[3], box.n);
    box.kink = numbers(parts[4], box.n);
    box.shift = numbers(parts[5], box.n);
    box.group = indices(parts[6], box.n);
    box.rows = indices(parts[7], box.n);
    require(box.gradient && box.start && box.lower && box.upper, "a box needs its four arrays");
    require(box.n < INT32_MAX / 2, "a box has too many variables");
    require(box.rows != nullptr || box.n == n, "a box without rows needs one entry per row of K");
    for (Size t = 0; t < (box.rows == nullptr ? 0 : box.n); ++t)
      require(box.rows[t] >= 0 && box.rows[t] < n, "rows must be those of K");
    require_numbers(box);
    return box;
  }

  const double* numbers(nb::handle given, Size n) {
    if (given.is_none()) return nullptr;
    numbers_.push_back(cast_to<Numbers>(given, kNumbers));
    require(static_cast<Size>(numbers_.back().shape(0)) == n, "arrays of a box differ in length");
    return n == 0 ? &nothing_ : numbers_.back().data();
  }

  const std::int64_t* indices(nb::handle given, Size n) {
    if (given.is_none()) return nullptr;
    indices_.push_back(cast_to<Indices>(given, kIndices));
    require(static_cast<Size>(indices_.back().shape(0)) == n, "arrays of a box differ in length");
    return n == 0 ? &none_ : indices_.back().data();
  }

  static constexpr const char* kNumbers = "a vector of float64 was expected";
  static constexpr const char* kIndices = "a vector of int64 was expected";
  static constexpr double nothing_ = 0.0;
  static constexpr std::int64_t none_ = 0;
  std::vector<Numbers> numbers_;
  std::vector<Indices> indices_;
};

nb::object as_vector(Buffer<double>& buffer, Size n) {
  return nb::cast(as_array(std::move(buffer), {static_cast<std::size_t>(n)}));
}

// Calls solve(tol, max_iter, threads, poll, progress); Python's poll is told how far the loop is.
template <class Solve>
void run(double tol, std::int64_t max_iter, nb::object callback, int threads, Solve&& solve) {
  require_tolerance(tol);
  require_poll(callback);
  Progress progress(usable(threads));
  std::function<bool()> ask;
  if (!callback.is_none())
    ask = [&] { return nb::cast<bool>(callback(progress.steps(), progress.violation())); };
  unlocked(
      [&](Poll& poll) {
        solve(tol, std::max<std::int64_t>(0, max_iter), usable(threads), poll, progress);
      },
      std::move(ask));
}

template <class Entry>
Matrix<Entry> matrix_of(const Square<Entry>& K) {
  const Size n = extent(K, 0);
  require_square(K);
  require(n < INT32_MAX / 2, "K has too many rows");
  return {K.data(), n, static_cast<Size>(K.stride(0))};
}

template <class Entry>
nb::list box_qps(Square<Entry> K, nb::sequence given, double tol, std::int64_t max_iter,
                 nb::object callback, int threads) {
  const Matrix<Entry> matrix = matrix_of(K);
  Reader reader;
  std::vector<Box> boxes;
  for (const nb::handle one : given) boxes.push_back(reader.read_box(one, matrix.n));
  std::vector<Buffer<double>> memory;
  std::vector<Answer> answers;
  for (const Box& box : boxes) {
    memory.emplace_back(box.n);
    memory.emplace_back(box.n);
    answers.push_back({memory[memory.size() - 2].data(), memory.back().data()});
  }
  run(tol, max_iter, std::move(callback), threads, [&](auto&&... limits) {
    solve_boxes(matrix, boxes, answers, limits...);
  });
  nb::list out;
  for (std::size_t at = 0; at < boxes.size(); ++at)
    out.append(nb::make_tuple(as_vector(memory[2 * at], boxes[at].n),
                              as_vector(memory[2 * at + 1], boxes[at].n), answers[at].iterations,
                              answers[at].violation));
  return out;
}

// Memory of all stages of a chain, handed to Python at the end.
struct ChainMemory {
  explicit ChainMemory(const Chain& chain)
      : stages(static_cast<Size>(chain.stages.size())),
        b(stages * chain.box.n),
        gradient(stages * chain.box.n),
        offsets(stages * chain.groups),
        values(stages * chain.judged_count),
        violation(stages),
        iterations(static_cast<std::size_t>(stages), 0) {
    std::fill_n(b.data(), stages * chain.box.n, 0.0);
    std::fill_n(gradient.data(), stages * chain.box.n, 0.0);
    std::fill_n(offsets.data(), stages * chain.groups, 0.0);
    std::fill_n(values.data(), stages * chain.judged_count, 0.0);
    std::fill_n(violation.data(), stages, std::numeric_limits<double>::infinity());
  }
  ChainAnswer answer() {
    return {b.data(), gradient.data(), offsets.data(), values.data(), iterations.data(), violation.data()};
  }

  Size stages;
  Buffer<double> b, gradient, offsets, values, violation;
  std::vector<std::int64_t> iterations;
};

template <class Entry>
nb::list box_chains(Square<Entry> K, nb::sequence given, double tol, std::int64_t max_iter,
                    nb::object callback, int threads) {
  const Matrix<Entry> matrix = matrix_of(K);
  Reader reader;
  std::vector<Chain> chains;
  for (const nb::handle one : given) chains.push_back(reader.read_chain(one, matrix.n));
  std::vector<ChainMemory> memory;
  std::vector<ChainAnswer> answers;
  for (const Chain& chain : chains) memory.emplace_back(chain);
  for (ChainMemory& one : memory) answers.push_back(one.answer());
  run(tol, max_iter, std::move(callback), threads, [&](auto&&... limits) {
    solve_chains(matrix, chains, answers, limits...);
  });
  nb::list out;
  for (std::size_t at = 0; at < chains.size(); ++at) {
    ChainMemory& one = memory[at];
    nb::list iterations;
    for (const std::int64_t steps : one.iterations) iterations.append(steps);
    out.append(nb::make_tuple(as_vector(one.b, one.stages * chains[at].box.n),
                              as_vector(one.gradient, one.stages * chains[at].box.n),
                              as_vector(one.offsets, one.stages * chains[at].groups),
                              as_vector(one.values, one.stages * chains[at].judged_count),
                              iterations, as_vector(one.violation, one.stages)));
  }
  return out;
}

template <class Entry>
void bind(nb::module_& m) {
  m.def("box_chains", &box_chains<Entry>, nb::arg("K").noconvert(), nb::arg("chains"),
        nb::arg("tol"), nb::arg("max_iter"), nb::arg("poll").none(), nb::arg("threads"));
  m.def("box_qps", &box_qps<Entry>, nb::arg("K").noconvert(), nb::arg("boxes"), nb::arg("tol"),
        nb::arg("max_iter"), nb::arg("poll").none(), nb::arg("threads"));
}

}  // namespace
}  // namespace mercer::svm

void bind_svm(nanobind::module_& m) {
  mercer::svm::bind<float>(m);
  mercer::svm::bind<double>(m);
}
