// What Python sees of the search for nearest neighbours.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "pairs/neighbours.hpp"
#include "runtime/bindings.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using namespace mercer;

// X, Y and the squared lengths of the rows of X
using Exact = std::tuple<MatrixOf<double>, MatrixOf<double>, VectorOf<double>>;

template <class T>
ExactRows exact_rows(const Pairs<T>& pairs, const Exact& given) {
  const auto& [x, y, norms] = given;
  require(extent(x, 0) == pairs.rows() && extent(y, 0) == pairs.columns() &&
              extent(x, 1) == extent(y, 1) && extent(norms, 0) == pairs.rows(),
          "exact rows of the wrong shape");
  return {x.data(), y.data(), norms.data(), extent(x, 1)};
}

template <class T>
void nearest_into(Pairs<T>& pairs, Result<Size> index, Result<double> key, Size begin, Size end,
                  bool itself, bool upper, nb::list given,
                  const std::optional<Exact>& exact, int threads) {
  const auto blocks = read_list<MatrixOf<T>>(given, "blocks are matrices of the type of the pairs");
  require(0 <= begin && begin <= end && end <= pairs.rows(), "no such rows");
  const Size count = extent(index, 1);
  require(extent(index, 0) == end - begin && extent(key, 0) == end - begin &&
              extent(key, 1) == count && count > 0 && count <= INT32_MAX,
          "results of the wrong shape");
  require(pairs.columns() <= std::numeric_limits<std::int32_t>::max(), "too many columns");
  require(!(itself || upper) || pairs.rows() == pairs.columns(), "Y is not X");
  require(!upper || (begin == 0 && end == pairs.rows() && blocks.empty()), "not the whole matrix");
  Externals<T> externals;
  for (const MatrixOf<T>& block : blocks) {
    require(extent(block, 0) == end - begin && extent(block, 1) == pairs.columns(),
            "an evaluated block has the wrong shape");
    externals.blocks.push_back({block.data(), pairs.columns()});
  }
  const ExactRows rows = exact ? exact_rows(pairs, *exact) : ExactRows{};
  const NearestTask task{{nullptr, begin, end - begin}, static_cast<int>(count), itself, upper,
                         exact ? &rows : nullptr};
  unlocked([&](Poll& poll) {
    nearest(pairs, externals, task, index.data(), key.data(), {usable(threads), &poll});
  });
}

}  // namespace

void bind_neighbours(nb::module_& m) {
  m.def("nearest", &nearest_into<float>, "pairs"_a, "index"_a.noconvert(), "key"_a.noconvert(),
        "begin"_a, "end"_a, "itself"_a, "upper"_a, "blocks"_a, "exact"_a.none(), "threads"_a);
  m.def("nearest", &nearest_into<double>, "pairs"_a, "index"_a.noconvert(), "key"_a.noconvert(),
        "begin"_a, "end"_a, "itself"_a, "upper"_a, "blocks"_a, "exact"_a.none(), "threads"_a);
}
