// What Python sees of the tile engine: two classes, one per working type.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pairs/pairs.hpp"
#include "runtime/bindings.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using namespace mercer;

using Blocks = nb::list;
template <class T>
using SparseTuple = std::tuple<VectorOf<Size>, VectorOf<std::int32_t>, VectorOf<T>>;
constexpr Size kMostRows = Size{1} << 48;  // numbers of entries and tiles stay far from overflow
using OpTuple = std::tuple<int, int, int, int, int, int, double, double, double>;

// A new array whose memory goes back to the arena when Python is done with it.
template <class S>
Result<S> empty(Size rows, Size columns) {
  require(rows >= 0 && columns >= 0, "negative shape");
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(columns);
  if (width > 0 && height > SIZE_MAX / sizeof(S) / width) throw std::bad_alloc();
  void* memory = take_memory(std::max<std::size_t>(height * width, 1) * sizeof(S));
  nb::capsule owner(memory, [](void* p) noexcept { give_memory(p); });
  return Result<S>(memory, {height, width}, owner);
}

// --- binding ---------------------------------------------------------------------------------

template <class S>
DenseInput<S> dense_input(const MatrixOf<S>& m) {
  return {m.data(), extent(m, 0), extent(m, 1)};
}

template <class T>
SparseInput<T> sparse_input(const SparseTuple<T>& rows, Size features) {
  const auto& [start, feature, value] = rows;
  const Size count = sparse_rows(start, feature, value, features);
  return {{start.data(), feature.data(), value.data()}, count};
}

Statistic statistic_of(int number, int degree) {
  require(number >= kDot && number <= kSymmetricSum, "no such statistic");
  require(number != kSymmetricSum || (degree >= 0 && degree <= kMaxDegree),
          "symmetric sums have degrees from 0 to 32");
  return static_cast<Statistic>(number);
}

template <class T, class S>
void add_dense(Pairs<T>& pairs, int statistic, int degree, MatrixOf<S> x,
               std::optional<MatrixOf<S>> y, int threads) {
  const DenseInput<S> rows = dense_input(x), columns = y ? dense_input(*y) : rows;
  require(rows.rows == pairs.rows() && columns.rows == pairs.columns(), "wrong number of rows");
  require(rows.features == columns.features, "X and Y differ in their number of features");
  const Statistic kind = statistic_of(statistic, degree);
  unlocked([&](Poll& poll) {
    pairs.add_leaf(bind_dense<T, S>(kind, degree, rows, y ? &columns : nullptr, pairs.tiles(),
                                    {usable(threads), &poll}));
  });
}

template <class T>
void add_sparse(Pairs<T>& pairs, int statistic, int degree, Size features, SparseTuple<T> x,
                std::optional<SparseTuple<T>> y) {
  const SparseInput<T> rows = sparse_input<T>(x, features),
                       columns = y ? sparse_input<T>(*y, features) : rows;
  require(rows.rows == pairs.rows() && columns.rows == pairs.columns(), "wrong number of rows");
  const Statistic kind = statistic_of(statistic, degree);
  nb::gil_scoped_release released;
  pairs.add_leaf(bind_sparse<T>(kind, degree, features, rows, y ? &columns : nullptr,
                                pairs.tiles()));
}

template <class T>
void add_row_term(Pairs<T>& pairs, VectorOf<double> rows, VectorOf<double> columns) {
  require(extent(rows, 0) == pairs.rows() && extent(columns, 0) == pairs.columns(),
          "row terms do not match the shape");
  pairs.add_row_term(rows.data(), columns.data());
}

template <class T>
void set_program(Pairs<T>& pairs, nb::sequence ops, nb::sequence coefficients, int registers) {
  Program program{{}, read_list<double>(coefficients, "coefficients are numbers"), registers};
  for (const OpTuple& op : read_list<OpTuple>(ops, "an operation is six whole numbers and three")) {
    program.ops.push_back(std::apply([](auto... field) { return Op{field...}; }, op));
  }
  pairs.set_program(std::move(program));
}

// --- evaluating ------------------------------------------------------------------------------

// Blocks that Python evaluated, with their arrays: one that had to be converted (strides, another
// type) is a copy that nobody else keeps.
template <class T>
struct HeldBlocks {
  std::vector<MatrixOf<T>> arrays;
  Externals<T> externals;
};

template <class T>
HeldBlocks<T> hold_blocks(const Blocks& blocks, const Pairs<T>& pairs, RowSet set,
                          Size first_column) {
  HeldBlocks<T> held{
      read_list<MatrixOf<T>>(blocks, "blocks are matrices of the type of the pairs"),
      {{}, first_column}};
  const Size width = pairs.columns() - first_column;
  for (const MatrixOf<T>& block : held.arrays) {
    require(extent(block, 0) == set.count && extent(block, 1) == width,
            "an evaluated block has the wrong shape");
    held.externals.blocks.push_back({block.data(), width});
  }
  return held;
}

// Right-hand sides are counted in 32 bits, with room to round up.
int vectors_of(const MatrixOf<double>& v, Size rows) {
  require(extent(v, 0) == rows, "V does not match the columns");
  require(extent(v, 1) <= INT32_MAX / 2, "V has too many columns");
  return static_cast<int>(extent(v, 1));
}

template <class T>
RowSet range_of(const Pairs<T>& pairs, Size begin, Size end) {
  if (begin < 0 || end < begin || end > pairs.rows()) throw nb::index_error("no such rows");
  return {nullptr, begin, end - begin};
}

template <class T>
RowSet gather_of(const Pairs<T>& pairs, const VectorOf<Size>& index) {
  const Size *first = index.data(), *last = first + extent(index, 0);
  const auto outside = [&](Size row) { return row < 0 || row >= pairs.rows(); };
  if (std::any_of(first, last, outside)) throw nb::index_error("no such rows");
  return {first, 0, last - first};
}

template <class T>
Result<T> fill(Pairs<T>& pairs, RowSet set, const Blocks& blocks, int threads) {
  Result<T> out = empty<T>(set.count, pairs.columns());
  const HeldBlocks<T> held = hold_blocks(blocks, pairs, set, 0);
  unlocked([&](Poll& poll) {
    pairs.fill(set, held.externals, out.data(), {usable(threads), &poll});
  });
  return out;
}

template <class T>
Result<T> range(Pairs<T>& pairs, Size begin, Size end, const Blocks& blocks, int threads) {
  return fill(pairs, range_of(pairs, begin, end), blocks, threads);
}

template <class T>
Result<T> gather(Pairs<T>& pairs, VectorOf<Size> index, const Blocks& blocks, int threads) {
  return fill(pairs, gather_of(pairs, index), blocks, threads);
}

template <class T>
void symmetric(Pairs<T>& pairs, Result<T> out, Size begin, Size end, const Blocks& blocks,
               int threads) {
  const RowSet set = range_of(pairs, begin, end);
  require(begin % kTile == 0, "symmetric blocks begin at whole tiles");
  require(pairs.rows() == pairs.columns() && extent(out, 0) == pairs.rows() &&
              extent(out, 1) >= pairs.rows(),
          "the result has the wrong shape");
  const HeldBlocks<T> held = hold_blocks(blocks, pairs, set, begin);
  unlocked([&](Poll& poll) {
    pairs.fill_symmetric(set, held.externals, out.data(), extent(out, 1), {usable(threads), &poll});
  });
}

template <class T>
Result<double> multiply(Pairs<T>& pairs, MatrixOf<double> v, Size begin, Size end,
                        const Blocks& blocks, int threads) {
  const RowSet set = range_of(pairs, begin, end);
  const int vectors = vectors_of(v, pairs.columns());
  Result<double> out = empty<double>(set.count, vectors);
  const HeldBlocks<T> held = hold_blocks(blocks, pairs, set, 0);
  unlocked([&](Poll& poll) {
    pairs.multiply(set, held.externals, v.data(), vectors, out.data(),
                   {usable(threads), &poll});
  });
  return out;
}

template <class T>
Result<double> multiply_half(Pairs<T>& pairs, MatrixOf<double> v, int threads) {
  require(pairs.rows() == pairs.columns(), "a symmetric matrix is square");
  const int vectors = vectors_of(v, pairs.columns());
  Result<double> out = empty<double>(pairs.rows(), vectors);
  unlocked([&](Poll& poll) {
    pairs.multiply_symmetric(v.data(), vectors, out.data(), {usable(threads), &poll});
  });
  return out;
}

template <class T>
Result<double> symmetric_product(MatrixOf<T> k, MatrixOf<double> v, std::optional<VectorOf<Size>> ends,
                                 std::optional<MatrixOf<bool>> reads,
                                 std::optional<MatrixOf<bool>> writes, int threads) {
  const Size n = extent(k, 0);
  require(n == extent(k, 1), "a symmetric matrix is square");
  const int vectors = vectors_of(v, n);
  RowParts parts{};
  if (ends) {
    parts.ends.assign(ends->data(), ends->data() + extent(*ends, 0));
    Size last = 0;
    for (const Size end : parts.ends)
      require(end >= std::exchange(last, end), "parts have to be in ascending order");
    require(last == n, "parts have to cover all rows");
    for (const auto* flags : {&reads, &writes}) {
      require(flags->has_value() && extent(**flags, 0) == extent(*ends, 0) &&
                  extent(**flags, 1) == vectors,
              "flags for every part and column were expected");
    }
    parts.reads = reads->data(), parts.writes = writes->data();
  }
  Result<double> out = empty<double>(n, vectors);
  unlocked([&](Poll& poll) {
    multiply_symmetric<T>(k.data(), n, v.data(), vectors, ends ? &parts : nullptr,
                          out.data(), {usable(threads), &poll});
  });
  return out;
}

template <class T>
void bind_class(nb::module_& m, const char* name) {
  nb::class_<Pairs<T>>(m, name)
      .def("__init__",
           [](Pairs<T>* self, Size rows, Size columns) {
             require(rows >= 0 && columns >= 0 && std::max(rows, columns) <= kMostRows,
                     "no such shape");
             choose_instruction_set();
             new (self) Pairs<T>(rows, columns);
           },
           "rows"_a, "columns"_a)
      .def("add_dense", &add_dense<T, float>, "statistic"_a, "degree"_a, "x"_a.noconvert(),
           "y"_a.noconvert().none(), "threads"_a)
      .def("add_dense", &add_dense<T, double>, "statistic"_a, "degree"_a, "x"_a.noconvert(),
           "y"_a.noconvert().none(), "threads"_a)
      .def("add_sparse", &add_sparse<T>, "statistic"_a, "degree"_a, "features"_a, "x"_a,
           "y"_a.none())
      .def("add_row_term", &add_row_term<T>, "rows"_a, "columns"_a)
      .def("set_program", &set_program<T>, "ops"_a, "coefficients"_a, "registers"_a)
      .def("range", &range<T>, "begin"_a, "end"_a, "blocks"_a, "threads"_a)
      .def("gather", &gather<T>, "index"_a, "blocks"_a, "threads"_a)
      .def("symmetric", &symmetric<T>, "out"_a.noconvert(), "begin"_a, "end"_a, "blocks"_a,
           "threads"_a)
      .def("multiply", &multiply<T>, "v"_a, "begin"_a, "end"_a, "blocks"_a, "threads"_a)
      .def("multiply_symmetric", &multiply_half<T>, "v"_a, "threads"_a)
      .def_prop_ro("byte_leaves", &Pairs<T>::byte_leaves)
      .def_prop_ro("instruction_set",
                   [](const Pairs<T>& pairs) { return std::string(pairs.tiles().name); });
}

}  // namespace

void bind_pairs(nb::module_& m) {
  bind_class<float>(m, "PairsFloat");
  bind_class<double>(m, "PairsDouble");
  m.def("empty_float", &empty<float>, "rows"_a, "columns"_a);
  m.def("empty_double", &empty<double>, "rows"_a, "columns"_a);
  m.def("symmetric_product", &symmetric_product<float>, "k"_a.noconvert(), "v"_a, "ends"_a.none(),
        "reads"_a.none(), "writes"_a.none(), "threads"_a);
  m.def("symmetric_product", &symmetric_product<double>, "k"_a.noconvert(), "v"_a, "ends"_a.none(),
        "reads"_a.none(), "writes"_a.none(), "threads"_a);
  m.def("instruction_sets", &instruction_sets);
}
