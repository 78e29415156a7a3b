// The border to the vector code: plain structs and one table of functions per instruction set.
//
// Vector code is compiled several times, once per instruction set, from one source (tiles.cpp).
// Only what stands here crosses that border; no std:: template may, or the linker could keep the
// AVX-512 copy of it for everyone.
#pragma once

#include <stdint.h>

namespace mercer {

// Kernel matrices are made in tiles of this side: 147 KB in float32, which stays in L2.
constexpr int kTile = 192;

// Depth of one pass over packed panels: 192 rows of it and a tile fit L2 together.
constexpr int kDepth = 256;

enum Statistic {
  kDot,
  kSqDist,
  kAbsDist,
  kMinSum,
  kChiSq,
  kSubsetProduct,
  kSymmetricSum,
  kByteDot,  // a feature is a word: four bytes of A times four signed bytes of B
};

constexpr int kMaxDegree = 32;  // of kSymmetricSum

// --- packed dense rows -----------------------------------------------------------------------

// C[i][j] (+)= statistic of row i of A and column j of B, over `depth` features.
// A: panels of mr rows, a panel holds [feature][mr]; panels lie `a_stride` apart.
// B: panels of nr columns, a panel holds [feature][nr]; panels lie `b_stride` apart.
template <class T>
struct PanelArgs {
  const T* a;
  const T* b;
  int64_t a_stride;
  int64_t b_stride;
  int64_t depth;
  T* c;
  int64_t ld;
  int rows;
  int panels;  // of B
  int degree;  // of kSymmetricSum
  bool first;  // start from the neutral element, else from what C holds
};

// --- sparse rows -----------------------------------------------------------------------------

template <class T>
struct SparseRows {
  const int64_t* start;  // row r owns entries start[r] .. start[r + 1]
  const int32_t* feature;
  const T* value;
};

// Scratch of one worker: `slot` has one entry per feature, all zero between calls; `values` grows
// to [slots][nr] for the columns in work. Slot 0 is a row of zeros: features absent from B.
template <class T>
struct SparseArgs {
  SparseRows<T> a;
  SparseRows<T> b;
  const int64_t* a_rows;  // numbers of the rows of A
  int rows;
  int64_t b_begin;  // first row of B, up to nr rows
  int columns;
  int32_t* slot;
  T* values;
  T* c;
  int64_t ld;
  int degree;
};

// --- the program on finished statistics ------------------------------------------------------

enum OpCode {
  kFill,        // c0
  kAffine,      // c0 a + c1
  kSum,         // c0 a + c1 b + c2
  kProduct,     // c0 a b
  kRatio,       // a / b, with 0/0 = 1
  kExp,         // exp(c0 a + c1)
  kSqrt,        // sqrt(c0 a + c1)
  kTanh,        // tanh(c0 a + c1)
  kPower,       // (c0 a + c1) ** c2
  kWholePower,  // (c0 a + c1) ** index
  kPolynomial,  // sum of coefficients[index + k] (c0 a + c1)^k, k < count
  kRowProduct,  // u_i w_j of row term `index`
  kRowSum,      // u_i + w_j of row term `index`
  kExternal,    // block `index` that Python evaluated
};

struct Op {
  int code;
  int out;  // registers
  int a;
  int b;
  int index;
  int count;
  double c0;
  double c1;
  double c2;
};

template <class T>
struct RowTerm {
  const T* rows;
  const T* columns;
};

template <class T>
struct External {
  const T* values;
  int64_t ld;
};

// Some rows of a tile. Registers hold rows x ld entries each, contiguous; ld is a multiple of nr.
template <class T>
struct Strip {
  T* const* registers;
  const RowTerm<T>* row_terms;
  const External<T>* externals;
  const double* coefficients;
  int rows;
  int columns;  // at most ld; what lies beyond is never shown
  int64_t ld;
};

// Rows of a tile times a block of vectors, added to float64 sums.
template <class T>
struct ProductArgs {
  const T* strip;
  int64_t ld;
  int rows;
  int columns;
  const T* v;  // [column][width] of the tile's first column, or [column / lanes][vector][lane]
  int width;   // vectors, rounded up to lanes; 0 in the second order, for few of them
  int vectors;
  double* out;
  int64_t out_ld;
};

// The same for a tile above the diagonal of a symmetric matrix, and its transpose times the vectors
// of its rows, which is added to `turned` in T, in the order of v.
template <class T>
struct BothArgs {
  const T* strip;
  int64_t ld;
  int rows;
  int columns;
  const T* v;  // of the tile's first column
  const T* u;  // of the first row: [row][width], or [row][vector] when `width` is 0
  int width;
  int vectors;
  double* out;  // of the first row
  int64_t out_ld;
  T* turned;
};

// A part of a stored symmetric matrix times right-hand sides, each on its own: of the columns for
// the sums of the rows, of the rows for those of the columns. What lies beyond the last column of
// `v` and `turned` up to a whole vector is read, and does not matter.
template <class T>
struct StripeArgs {
  const T* strip;
  int64_t ld;
  int rows;
  int columns;
  int vectors;
  const T* const* v;    // from the first column on
  const T* const* u;    // from the first row on
  double* const* out;   // of the rows
  T* const* turned;     // of the columns; null: only the rows
};

// --- one instruction set ---------------------------------------------------------------------

template <class T>
struct Tiles {
  const char* name;
  int lanes;
  int mr;
  int nr;
  bool bytes;  // knows kByteDot, if the machine has the instruction
  void (*compare)(Statistic, const PanelArgs<T>&);
  void (*compare_sparse)(Statistic, const SparseArgs<T>&);
  // strip = max(0, s + factor strip) with s_ij = x_i + y_j; returns how many results are doubtful:
  // below s / 64, where cancellation has eaten more than six bits. With a unit other than zero
  // strip, x and y hold 32-bit whole numbers, and strip = unit (s + factor strip).
  int64_t (*combine)(T* strip, int64_t ld, int rows, const T* x, const T* y, T factor, T unit);
  void (*run)(const Op* ops, int count, const Strip<T>&);
  void (*transpose)(const T* in, int64_t ld, int rows, int columns, T* out, int64_t out_ld);
  // Copies rows x columns to their place; `stream` goes around the caches.
  void (*place)(const T* in, int64_t ld, int rows, int columns, T* out, int64_t out_ld,
                bool stream);
  // Streams the transpose of `lanes` rows; every row of `out` begins on a vector boundary.
  void (*stream_turned)(const T* in, int64_t ld, int columns, T* out, int64_t out_ld);
  void (*finish_streaming)();  // what was streamed is seen by other threads from here on
  void (*multiply)(const ProductArgs<T>&);
  void (*multiply_both)(const BothArgs<T>&);
  // Adds `turned` to float64 sums (columns x vectors), and clears it.
  void (*collect)(T* turned, int width, int columns, int vectors, double* out);
  void (*multiply_stripes)(const StripeArgs<T>&);
  // Positions of the entries of a row that are at most `limit`, ascending; returns how many. `out`
  // has room for `columns`, rounded up to lanes.
  int (*select)(const T* row, int columns, T limit, int32_t* out);
};

}  // namespace mercer
