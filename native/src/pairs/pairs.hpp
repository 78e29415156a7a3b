// An expression bound to rows and columns: makes the kernel matrix tile by tile.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "pairs/leaf.hpp"
#include "pairs/symmetric.hpp"

namespace mercer {

// What is computed: registers 0 .. leaves-1 receive the statistics, then the operations run, and
// register 0 holds the result. There is always at least one register.
struct Program {
  std::vector<Op> ops;
  std::vector<double> coefficients;
  int registers = 1;
};

// Which rows: `index[r]`, or begin + r when there is no index.
struct RowSet {
  const Size* index;
  Size begin;
  Size count;

  Size operator[](Size r) const { return index ? index[r] : begin + r; }
};

// Blocks that Python evaluated for a row set, from column `first_column` on.
template <class T>
struct Externals {
  std::vector<External<T>> blocks;
  Size first_column = 0;
};

// A finished tile, shown to a visitor: entry (r, c) is values[r * ld + c]; the buffer has room for
// whole vectors of rows and columns.
template <class T>
struct Seen {
  Size row;  // first row, counted from the beginning of the set
  Size column;
  int rows;
  int columns;
  const T* values;
  Size ld;
  int worker;
};

template <class T>
struct Scratch;

template <class T>
class Pairs {
 public:
  Pairs(Size rows, Size columns);
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;
  ~Pairs();

  const Tiles<T>& tiles() const { return tiles_; }
  Size rows() const { return rows_; }
  Size columns() const { return columns_; }

  // How many leaves are compared as bytes.
  Size byte_leaves() const {
    return std::count_if(leaves_.begin(), leaves_.end(), [](auto& leaf) { return leaf.unit != 0; });
  }

  // Leaves and row terms first, then the program, once: it is checked against them.
  void add_leaf(Leaf<T> leaf);
  void add_row_term(const double* rows, const double* columns);
  void set_program(Program program);

  // out (set.count x columns) gets the rows of the set.
  void fill(RowSet set, const Externals<T>& externals, T* out, Work work);

  // For Y = X: out is the whole matrix, its rows `ld` apart; rows begin .. begin + count get their entries from the
  // diagonal on, and the mirror entries. `begin` is a multiple of kTile.
  void fill_symmetric(RowSet set, const Externals<T>& externals, T* out, Size ld, Work work);

  // out (set.count x vectors), float64, gets the product with V (columns x vectors, C order).
  void multiply(RowSet set, const Externals<T>& externals, const double* v, int vectors,
                double* out, Work work);

  // The same for Y = X and all rows, from half of the tiles. V is scaled into float32's range.
  void multiply_symmetric(const double* v, int vectors, double* out, Work work);

  // Shows every tile to `see`, in no order, from several threads; for Y = X and `upper` only those
  // on the diagonal and right of it (the set is then all rows).
  void visit(RowSet set, const Externals<T>& externals, bool upper,
             const std::function<void(const Seen<T>&)>& see, Work work);

 private:
  struct Columns {
    Size begin;
    int count;
    int panels;
    Size ld;  // panels * nr
  };
  class Team;

  Columns columns_of(Size tile) const;
  Size row_tiles(RowSet set) const { return (set.count + kTile - 1) / kTile; }
  Size column_tiles() const { return (columns_ + kTile - 1) / kTile; }
  bool worth_streaming(Size entries) const;
  void require_unfinished() const;
  void require_ready(const Externals<T>& externals) const;

  // Steps of making one tile in the worker's scratch.
  void enter_rows(Scratch<T>& s, RowSet set, Size tile) const;
  void pack_rows(const Scratch<T>& s, const Leaf<T>& leaf, Size from, Size to, T* out) const;
  bool by_strips() const;
  void compare_dense(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const;
  void compare_sparse(Scratch<T>& s, std::size_t l, Columns c) const;
  void combine(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const;
  void repair_strip(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const;
  void repair_entries(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const;
  void point_strip(Scratch<T>& s, Columns c, const Externals<T>& externals, int first) const;
  template <class F>
  void make_tile(Scratch<T>& s, Columns c, const Externals<T>& externals, F&& done) const;

  void fill_diagonal(Scratch<T>& s, Columns c, const Externals<T>& externals, T* corner,
                     Size ld) const;
  void fill_mirrored(Scratch<T>& s, Columns c, const Externals<T>& externals, T* corner, T* mirror,
                     Size ld, bool stream) const;

  std::unique_ptr<Scratch<T>> make_scratch() const;
  std::unique_ptr<Scratch<T>> take_scratch();

  const Tiles<T>& tiles_;
  Size rows_;
  Size columns_;
  std::vector<Leaf<T>> leaves_;
  std::vector<Buffer<T>> row_terms_;
  std::vector<Buffer<T>> column_terms_;
  Program program_;
  bool ready_ = false;         // the program is there
  std::size_t externals_ = 0;  // blocks that it reads
  std::unique_ptr<Scratch<T>> spare_;  // the first of a list
};

}  // namespace mercer
