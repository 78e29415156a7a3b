// Python's view of partitions: shapes are checked here, the interpreter lock is released.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "partition/partition.hpp"
#include "runtime/bindings.hpp"

namespace mercer::partition {
namespace {

using Rectangle = MatrixOf<double>;
using Starts = MatrixOf<Label>;
using Vector = VectorOf<double>;
using Numbers = VectorOf<std::int64_t>;
using Columns = VectorOf<std::int32_t>;

// What every binding is given besides the points.
struct Given {
  std::optional<Starts> starts;    // labels of each start,
  std::optional<Rectangle> means;  // or means of each, below one another
  Size count;
  Vector weights, diagonal;
  Size max_iter;
  bool refine;
  nb::object poll;
  int threads;

  Task task(Size n, Size width) const {
    require(n > 0 && starts.has_value() != means.has_value(), "give either labels or means");
    require(static_cast<Size>(weights.shape(0)) == n && static_cast<Size>(diagonal.shape(0)) == n,
            "weights and diagonal have one entry per point");
    require(count >= 1 && count <= n, "there are more clusters than points");
    if (starts) check_labels(n);
    if (means)
      require(static_cast<Size>(means->shape(1)) == width &&
                  static_cast<Size>(means->shape(0)) % count == 0,
              "means have the width of the rows, and each start has all of them");
    require(std::all_of(weights.data(), weights.data() + n, [](double w) { return w > 0.0; }),
            "weights must be positive");
    return {n, count, weights.data(), diagonal.data(), max_iter, refine};
  }

  Size number() const {
    return starts ? static_cast<Size>(starts->shape(0))
                  : static_cast<Size>(means->shape(0)) / count;
  }

 private:
  void check_labels(Size n) const {
    require(static_cast<Size>(starts->shape(1)) == n, "a start has one label per point");
    std::vector<char> seen;
    for (std::size_t s = 0; s < starts->shape(0); ++s) {
      seen.assign(static_cast<std::size_t>(count), 0);
      for (Size i = 0; i < n; ++i) {
        const Label label = starts->data()[static_cast<Size>(s) * n + i];
        require(label >= 0 && label < count, "a label is out of range");
        seen[static_cast<std::size_t>(label)] = 1;
      }
      require(std::count(seen.begin(), seen.end(), 0) == 0, "a cluster of a start is empty");
    }
  }
};

nb::list report(Buffer<Label>& labels, const std::vector<Answer>& answers, Size n) {
  nb::list out;
  for (std::size_t s = 0; s < answers.size(); ++s) {
    const Size steps = static_cast<Size>(answers[s].steps.size());
    Buffer<Label> own(n);
    std::copy_n(labels.data() + static_cast<Size>(s) * n, n, own.data());
    Buffer<double> trace(2 * steps);
    for (Size t = 0; t < steps; ++t) {
      trace[2 * t] = answers[s].steps[t].objective;
      trace[2 * t + 1] = answers[s].steps[t].seconds;
    }
    out.append(nb::make_tuple(as_array(std::move(own), {static_cast<std::size_t>(n)}),
                              as_array(std::move(trace), {static_cast<std::size_t>(steps), 2}),
                              answers[s].settled));
  }
  return out;
}

template <class Points>
nb::list run(const Points& points, Size n, Size width, const Given& given) {
  const Task task = given.task(n, width);
  require_poll(given.poll);
  const Size starts = given.number();
  Buffer<Label> labels(starts * n);
  labels.clear();
  if (given.starts) std::copy_n(given.starts->data(), starts * n, labels.data());
  std::vector<Answer> answers;
  for (Size s = 0; s < starts; ++s) {
    const double* means = given.means ? given.means->data() + s * given.count * width : nullptr;
    answers.push_back({labels.data() + s * n, means, {}, false});
  }
  Board board;
  std::function<bool()> ask;
  if (!given.poll.is_none())
    ask = [&] { return nb::cast<bool>(given.poll(board.steps(), board.best())); };
  unlocked([&](Poll& poll) { divide(points, task, answers, usable(given.threads), poll, board); },
           std::move(ask));
  return report(labels, answers, n);
}

template <class Entry>
nb::list on_gram(Square<Entry> K, std::optional<Starts> starts, Size count, Vector weights, Vector diagonal,
                 Size max_iter, bool refine, nb::object poll, int threads) {
  const Size n = static_cast<Size>(K.shape(0));
  require_square(K);
  const Matrix<Entry> matrix{K.data(), static_cast<Size>(K.stride(0))};
  return run(matrix, n, n,
             {starts, {}, count, weights, diagonal, max_iter, refine, poll, threads});
}

nb::list on_dense(Rectangle F, std::optional<Numbers> index, std::optional<Rectangle> means,
                  std::optional<Starts> starts, Size count, Vector weights, Vector diagonal, Size max_iter, bool refine, nb::object poll,
                  int threads) {
  const Size rows = static_cast<Size>(F.shape(0));
  const linear::DenseRows dense{F.data(), index ? static_cast<Size>(index->shape(0)) : rows,
                                static_cast<Size>(F.shape(1)), row_numbers(index, rows)};
  return run(dense, dense.count, dense.width,
             {starts, means, count, weights, diagonal, max_iter, refine, poll, threads});
}

nb::list on_sparse(Numbers begin, Columns columns, Vector values, Size width,
                   std::optional<Numbers> index, std::optional<Rectangle> means,
                   std::optional<Starts> starts, Size count, Vector weights, Vector diagonal, Size max_iter, bool refine, nb::object poll, int threads) {
  const Size rows = sparse_rows(begin, columns, values, width);
  const linear::SparseRows sparse{begin.data(), columns.data(), values.data(),
                                  index ? static_cast<Size>(index->shape(0)) : rows, width,
                                  row_numbers(index, rows)};
  return run(sparse, sparse.count, width,
             {starts, means, count, weights, diagonal, max_iter, refine, poll, threads});
}

}  // namespace
}  // namespace mercer::partition

void bind_partition(nanobind::module_& m) {
  using namespace mercer::partition;
  namespace nb = nanobind;
  const auto common = [&](const char* name, auto function, auto... points) {
    m.def(name, function, points..., nb::arg("starts").none(), nb::arg("count"), nb::arg("weights"),
          nb::arg("diagonal"), nb::arg("max_iter"), nb::arg("refine"), nb::arg("poll").none(),
          nb::arg("threads"));
  };
  common("partition", &on_gram<float>, nb::arg("K").noconvert());
  common("partition", &on_gram<double>, nb::arg("K").noconvert());
  common("partition_dense", &on_dense, nb::arg("F").noconvert(), nb::arg("index").none(),
         nb::arg("means").none());
  common("partition_sparse", &on_sparse, nb::arg("begin"), nb::arg("columns"), nb::arg("values"),
         nb::arg("width"), nb::arg("index").none(), nb::arg("means").none());
}
