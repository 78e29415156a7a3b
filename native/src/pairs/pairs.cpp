// The tile loops: statistics into the tile, operations strip by strip, then to where it is wanted.
#include "pairs/pairs.hpp"

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <stdexcept>
#include <utility>

#include "runtime/dispatch.hpp"
#include "runtime/pool.hpp"

namespace mercer {
namespace {

// Below this many result bytes plain stores are better: the caller finds the result in the cache.
constexpr Size kStreamBytes = 4 << 20;

// Rows of a strip: a multiple of every mr and of every vector length, so that strips can be turned.
constexpr int kStripRows = 32;

// A product with fewer row tiles than this also splits the columns; the number is fixed, so that
// results do not depend on the number of threads.
constexpr Size kProductTasks = 16;

// A strip with more doubtful distances than one in this many is computed again as a whole.
constexpr Size kFewDoubtful = 16;

// One lock for the spare buffers of all objects, never destroyed. A fork waits until nobody holds
// it: a lock inside each object would stay locked in the child for ever.
std::mutex& spare_lock() {
  static std::mutex* const shared = [] {
    auto* made = new std::mutex;
    pthread_atfork([] { spare_lock().lock(); }, [] { spare_lock().unlock(); },
                   [] { spare_lock().unlock(); });
    return made;
  }();
  return *shared;
}
// Made when the library is loaded: a fork in the middle of a first use would leave it half made.
[[maybe_unused]] const std::mutex& g_spare_lock = spare_lock();

template <class T>
Buffer<T> zeros(Size size) {
  Buffer<T> out(size);
  std::fill_n(out.data(), size, T(0));
  return out;
}

}  // namespace

// Buffers of one worker, reused between calls.
template <class T>
struct Scratch {
  std::vector<Buffer<T>> registers;  // tiles for leaves (at least one), strips for the rest
  std::vector<Buffer<T>> packs;      // rows of A, per leaf
  std::vector<Buffer<T>> u;          // row terms of the rows in work
  Buffer<T> turned;                  // a tile, transposed
  Buffer<T> sums;                    // of a transposed tile times vectors; zero between tiles
  Buffer<T> panel;                   // rows of one strip, for repairs
  Buffer<T> values;                  // sparse columns, and the slots of their features
  Buffer<std::int32_t> slots;

  std::vector<T*> strip_registers;
  std::vector<RowTerm<T>> strip_terms;
  std::vector<External<T>> strip_blocks;

  Size row_tile = -1;
  int rows = 0;
  Size row_number[kTile];

  std::unique_ptr<Scratch> next;  // of the spare ones: a list grows without allocating
};

// The scratch of each worker of one call, taken when the worker first shows up.
template <class T>
class Pairs<T>::Team {
 public:
  Team(Pairs& pairs, Work work)
      : pairs_(pairs), members_(static_cast<std::size_t>(std::max(1, work.threads))), poll_(*work.poll) {}

  // After a failure scratches are dropped: a tile may be half made in them.
  ~Team() {
    if (std::uncaught_exceptions() > failures_) return;
    const std::lock_guard<std::mutex> guard(spare_lock());
    for (auto& member : members_) {
      if (!member) continue;
      member->next = std::move(pairs_.spare_);
      pairs_.spare_ = std::move(member);
    }
  }

  Scratch<T>& member(int worker) {
    auto& mine = members_[static_cast<std::size_t>(worker)];
    if (!mine) mine = pairs_.take_scratch();
    return *mine;
  }

  // Between tiles of a long task: worker 0 is the thread that Python called.
  bool stopped(int worker) {
    if (worker == 0) poll_.check();
    return poll_.stopped();
  }

 private:
  Pairs& pairs_;
  std::vector<std::unique_ptr<Scratch<T>>> members_;
  Poll& poll_;
  int failures_ = std::uncaught_exceptions();
};

// --- binding ---------------------------------------------------------------------------------

template <class T>
Pairs<T>::Pairs(Size rows, Size columns)
    : tiles_(table<Tiles<T>>()), rows_(rows), columns_(columns) {}

template <class T>
Pairs<T>::~Pairs() = default;

template <class T>
void Pairs<T>::require_unfinished() const {
  if (ready_) throw std::invalid_argument("the program was set already");
}

template <class T>
void Pairs<T>::require_ready(const Externals<T>& externals) const {
  if (!ready_) throw std::invalid_argument("there is no program yet");
  if (externals.blocks.size() < externals_) throw std::invalid_argument("blocks are missing");
}

template <class T>
void Pairs<T>::add_leaf(Leaf<T> leaf) {
  require_unfinished();
  leaves_.push_back(std::move(leaf));
}

template <class T>
void Pairs<T>::add_row_term(const double* rows, const double* columns) {
  require_unfinished();
  const auto copy = [](const double* in, Size count) {
    Buffer<T> out = zeros<T>(round_up(std::max<Size>(count, 1), kTile));
    for (Size i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
    return out;
  };
  row_terms_.reserve(row_terms_.size() + 1);  // both or none
  column_terms_.push_back(copy(columns, columns_));
  try {
    row_terms_.push_back(copy(rows, rows_));
  } catch (...) {
    column_terms_.pop_back();
    throw;
  }
}

namespace {

// What an operation reads besides registers must be there.
bool is_complete(const Op& op, const Program& program, std::size_t row_terms) {
  const auto within = [&](std::int64_t count, std::size_t size) {
    return op.index >= 0 && count >= 1 && op.index + count <= static_cast<std::int64_t>(size);
  };
  switch (op.code) {
    case kPolynomial: return within(op.count, program.coefficients.size());
    case kRowProduct:
    case kRowSum: return within(1, row_terms);
    case kExternal: return op.index >= 0;  // how many blocks there are is known with each call
    case kWholePower: return op.index > INT_MIN;
    default: return op.code >= kFill && op.code < kExternal;
  }
}

}  // namespace

template <class T>
void Pairs<T>::set_program(Program program) {
  require_unfinished();
  const Size least = std::max<Size>(1, leaves_.size()), written = program.ops.size();
  if (program.registers < least || program.registers > least + written) {
    throw std::invalid_argument("a register for each leaf, and up to one for each operation");
  }
  std::size_t externals = 0;
  for (const Op& op : program.ops) {
    const auto [low, high] = std::minmax({op.out, op.a, op.b});
    if (low < 0 || high >= program.registers) throw std::invalid_argument("no such register");
    if (!is_complete(op, program, row_terms_.size())) {
      throw std::invalid_argument("an operation reads what is not there");
    }
    if (op.code == kExternal) externals = std::max(externals, std::size_t(op.index) + 1);
  }
  program_ = std::move(program);
  externals_ = externals;
  ready_ = true;
}

template <class T>
std::unique_ptr<Scratch<T>> Pairs<T>::take_scratch() {
  {
    const std::lock_guard<std::mutex> guard(spare_lock());
    if (spare_) {
      auto spare = std::move(spare_);
      spare_ = std::move(spare->next);
      spare->row_tile = -1;
      return spare;
    }
  }
  return make_scratch();
}

template <class T>
std::unique_ptr<Scratch<T>> Pairs<T>::make_scratch() const {
  auto s = std::make_unique<Scratch<T>>();
  const int tile_registers = std::max(1, static_cast<int>(leaves_.size()));
  for (int r = 0; r < program_.registers; ++r) {
    s->registers.push_back(zeros<T>((r < tile_registers ? kTile : tiles_.mr) * Size{kTile}));
  }
  Size features = 0, slots = 0, depth = 0;
  for (const Leaf<T>& leaf : leaves_) {
    const Size packed = leaf.packed_by_pass() ? kDepth : leaf.features;
    s->packs.emplace_back(leaf.sparse ? 0 : kTile * packed);
    if (leaf.sparse) {
      features = std::max(features, leaf.features);
      slots = std::max(slots, leaf.most_slots);
    } else if (leaf.factor != 0) {
      depth = std::max(depth, leaf.features);
    }
  }
  for (std::size_t t = 0; t < row_terms_.size(); ++t) s->u.emplace_back(kTile);
  s->panel = Buffer<T>(depth * tiles_.mr);
  s->slots = zeros<std::int32_t>(features);
  if (features > 0) s->values = Buffer<T>((slots + 1) * tiles_.nr);
  s->strip_registers.resize(s->registers.size());
  s->strip_terms.resize(row_terms_.size());
  return s;
}

// --- rows and columns of one tile ------------------------------------------------------------

template <class T>
typename Pairs<T>::Columns Pairs<T>::columns_of(Size tile) const {
  const Size begin = tile * kTile;
  const int count = static_cast<int>(std::min<Size>(kTile, columns_ - begin));
  const int panels = (count + tiles_.nr - 1) / tiles_.nr;
  return {begin, count, panels, Size{panels} * tiles_.nr};
}

template <class T>
void Pairs<T>::enter_rows(Scratch<T>& s, RowSet set, Size tile) const {
  if (s.row_tile == tile) return;
  const Size begin = tile * kTile;
  s.row_tile = tile;
  s.rows = static_cast<int>(std::min<Size>(kTile, set.count - begin));
  for (int r = 0; r < s.rows; ++r) s.row_number[r] = set[begin + r];
  for (std::size_t t = 0; t < row_terms_.size(); ++t) {
    for (int r = 0; r < s.rows; ++r) s.u[t][r] = row_terms_[t][s.row_number[r]];
  }
  for (std::size_t l = 0; l < leaves_.size(); ++l) {
    const Leaf<T>& leaf = leaves_[l];
    if (leaf.sparse || leaf.packed_by_pass()) continue;
    pack_rows(s, leaf, 0, leaf.features, s.packs[l].data());
  }
}

// Panels of mr rows, each [feature][mr], features from .. to; missing rows are zero.
template <class T>
void Pairs<T>::pack_rows(const Scratch<T>& s, const Leaf<T>& leaf, Size from, Size to,
                         T* out) const {
  const int mr = tiles_.mr;
  for (int first = 0; first < s.rows; first += mr) {
    T* panel = out + first * (to - from);
    const int count = std::min(mr, s.rows - first);
    if (count < mr) std::fill_n(panel, mr * (to - from), T(0));
    for (int i = 0; i < count; ++i) {
      const T* row = leaf.x_rows.data() + s.row_number[first + i] * leaf.features;
      for (Size k = from; k < to; ++k) panel[(k - from) * mr + i] = row[k];
    }
  }
}

// --- statistics ------------------------------------------------------------------------------

// Whether tiles are made a few rows at a time, from features to finished strip: then the stores of
// one strip drain while the next is computed. Wide data take several passes over the features, and
// sparse columns are unpacked once per tile; for these the statistics of a tile come first.
template <class T>
bool Pairs<T>::by_strips() const {
  return std::all_of(leaves_.begin(), leaves_.end(), [](const Leaf<T>& leaf) {
    return !leaf.sparse && leaf.features <= kDepth && !leaf.packed_by_pass();
  });
}

template <class T>
void Pairs<T>::compare_dense(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const {
  const Leaf<T>& leaf = leaves_[l];
  const Size d = leaf.features, pass = leaf.kernel == kSymmetricSum ? d : kDepth;
  const bool by_pass = leaf.packed_by_pass();
  const T* b = leaf.y_panels.data() + c.begin * d;
  Size from = 0;
  do {  // at least once: without features the result is the neutral element
    const Size to = std::min(d, from + pass);
    T* pack = s.packs[l].data();
    if (by_pass) pack_rows(s, leaf, from, to, pack);
    const Size a_stride = (by_pass ? to - from : d) * tiles_.mr;
    const T* a = (by_pass ? pack : pack + from * tiles_.mr) + first / tiles_.mr * a_stride;
    tiles_.compare(leaf.kernel,
                   {a, b + from * tiles_.nr, a_stride, d * tiles_.nr, to - from,
                    s.registers[l].data() + first * c.ld, c.ld, count, c.panels, leaf.degree,
                    from == 0});
    from = to;
  } while (from < d);
}

template <class T>
void Pairs<T>::compare_sparse(Scratch<T>& s, std::size_t l, Columns c) const {
  const Leaf<T>& leaf = leaves_[l];
  for (int from = 0; from < c.count; from += tiles_.nr) {
    const int count = std::min(tiles_.nr, c.count - from);
    tiles_.compare_sparse(leaf.kernel, {leaf.x_sparse.view(), leaf.y_sparse().view(),
                                        s.row_number, s.rows, c.begin + from, count,
                                        s.slots.data(), s.values.data(),
                                        s.registers[l].data() + from, c.ld, leaf.degree});
  }
}

// Marginals added, and what cancellation spoiled computed again.
template <class T>
void Pairs<T>::combine(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const {
  const Leaf<T>& leaf = leaves_[l];
  if (leaf.factor == 0) return;
  T x[kTile];
  for (int i = 0; i < count; ++i) x[i] = leaf.x_margin[s.row_number[first + i]];
  T* strip = s.registers[l].data() + first * c.ld;
  const T* y = leaf.y_margin.data() + c.begin;
  const Size doubtful = tiles_.combine(strip, c.ld, count, x, y, leaf.factor, leaf.unit);
  if (doubtful == 0) return;
  if (doubtful * kFewDoubtful > count * c.ld && !leaf.sparse) {
    repair_strip(s, l, c, first, count);
  } else {
    repair_entries(s, l, c, first, count);
  }
}

template <class T>
void Pairs<T>::repair_entries(Scratch<T>& s, std::size_t l, Columns c, int first,
                              int count) const {
  const Leaf<T>& leaf = leaves_[l];
  for (int i = 0; i < count; ++i) {
    const Size row = s.row_number[first + i];
    T* values = s.registers[l].data() + (first + i) * c.ld;
    for (int j = 0; j < c.count; ++j) {
      const T total = leaf.x_margin[row] + leaf.y_margin[c.begin + j];
      const bool doubtful = !(values[j] >= total * T(1.0 / 64));  // as in Tiles::combine
      if (doubtful) values[j] = leaf.direct(row, c.begin + j, tiles_.nr);
    }
  }
}

template <class T>
void Pairs<T>::repair_strip(Scratch<T>& s, std::size_t l, Columns c, int first, int count) const {
  const Leaf<T>& leaf = leaves_[l];
  const Size d = leaf.features;
  const int mr = tiles_.mr;
  T* panel = s.panel.data();
  std::fill_n(panel, mr * d, T(0));
  for (int i = 0; i < count; ++i) {
    const T* row = leaf.x_rows.data() + s.row_number[first + i] * d;
    for (Size k = 0; k < d; ++k) panel[k * mr + i] = row[k];
  }
  tiles_.compare(leaf.statistic,
                 {panel, leaf.y_panels.data() + c.begin * d, d * mr, d * tiles_.nr, d,
                  s.registers[l].data() + first * c.ld, c.ld, count, c.panels, leaf.degree, true});
}

// --- one tile --------------------------------------------------------------------------------

// Calls done(first row, rows, strip) for each strip of the finished tile, while it is in L1.
template <class T>
template <class F>
void Pairs<T>::make_tile(Scratch<T>& s, Columns c, const Externals<T>& externals,
                         F&& done) const {
  const int ahead = by_strips() ? kStripRows : kTile;  // rows of statistics made at a time
  for (int first = 0; first < s.rows; first += tiles_.mr) {
    const int count = std::min(tiles_.mr, s.rows - first);
    for (std::size_t l = 0; l < leaves_.size() && first % ahead == 0; ++l) {
      leaves_[l].sparse ? compare_sparse(s, l, c)
                        : compare_dense(s, l, c, first, std::min(ahead, s.rows - first));
    }
    for (std::size_t l = 0; l < leaves_.size(); ++l) combine(s, l, c, first, count);
    point_strip(s, c, externals, first);
    tiles_.run(program_.ops.data(), static_cast<int>(program_.ops.size()),
               {s.strip_registers.data(), s.strip_terms.data(), s.strip_blocks.data(),
                program_.coefficients.data(), count, c.count, c.ld});
    done(first, count, s.strip_registers[0]);
  }
}

// Where the strip that begins at row `first` of the tile finds its operands.
template <class T>
void Pairs<T>::point_strip(Scratch<T>& s, Columns c, const Externals<T>& externals,
                           int first) const {
  const std::size_t tile_registers = std::max<std::size_t>(leaves_.size(), 1);
  for (std::size_t r = 0; r < s.registers.size(); ++r) {
    s.strip_registers[r] = s.registers[r].data() + (r < tile_registers ? first * c.ld : 0);
  }
  for (std::size_t t = 0; t < row_terms_.size(); ++t) {
    s.strip_terms[t] = {s.u[t].data() + first, column_terms_[t].data() + c.begin};
  }
  s.strip_blocks.resize(externals.blocks.size());
  for (std::size_t e = 0; e < externals.blocks.size(); ++e) {
    const auto [values, ld] = externals.blocks[e];
    const Size row = s.row_tile * kTile + first, column = c.begin - externals.first_column;
    s.strip_blocks[e] = {values + row * ld + column, ld};
  }
}

// --- where tiles go --------------------------------------------------------------------------

template <class T>
bool Pairs<T>::worth_streaming(Size entries) const {
  return entries * static_cast<Size>(sizeof(T)) > kStreamBytes;
}

template <class T>
void Pairs<T>::fill(RowSet set, const Externals<T>& externals, T* out, Work work) {
  require_ready(externals);
  Team team(*this, work);
  const Size across = column_tiles();
  const bool stream = worth_streaming(set.count * columns_);
  const auto task = [&](Size tile, int worker) {
    Scratch<T>& s = team.member(worker);
    enter_rows(s, set, tile / across);
    const Columns c = columns_of(tile % across);
    T* corner = out + s.row_tile * kTile * columns_ + c.begin;
    make_tile(s, c, externals, [&](int first, int count, const T* strip) {
      tiles_.place(strip, c.ld, count, c.count, corner + first * columns_, columns_, stream);
    });
    tiles_.finish_streaming();
  };
  parallel_for(row_tiles(set) * across, task, work.threads, *work.poll);
}

template <class T>
void Pairs<T>::fill_symmetric(RowSet set, const Externals<T>& externals, T* out, Size ld,
                              Work work) {
  require_ready(externals);
  Team team(*this, work);
  const Size across = column_tiles(), above = set.begin / kTile;
  const bool stream = worth_streaming(rows_ * columns_);
  const auto task = [&](Size tile, int worker) {
    const Size row_tile = above + tile / across, column_tile = tile % across;
    if (column_tile < row_tile) return;
    Scratch<T>& s = team.member(worker);
    enter_rows(s, set, tile / across);
    const Columns c = columns_of(column_tile);
    T* corner = out + row_tile * kTile * ld + c.begin;
    if (row_tile == column_tile) return fill_diagonal(s, c, externals, corner, ld);
    fill_mirrored(s, c, externals, corner, out + c.begin * ld + row_tile * kTile, ld, stream);
    tiles_.finish_streaming();
  };
  parallel_for(row_tiles(set) * across, task, work.threads, *work.poll);
}

// One half of the tile is copied to the other: not every statistic rounds alike in both orders.
template <class T>
void Pairs<T>::fill_diagonal(Scratch<T>& s, Columns c, const Externals<T>& externals,
                             T* corner, Size ld) const {
  make_tile(s, c, externals, [](int, int, const T*) {});
  T* tile = s.registers[0].data();
  for (int i = 0; i < s.rows; ++i) {
    for (int j = 0; j < i; ++j) tile[i * c.ld + j] = tile[j * c.ld + i];
  }
  tiles_.place(tile, c.ld, s.rows, c.count, corner, ld, false);
}

// The tile to its place and its transpose to the mirror place. Where rows of the matrix begin on
// vector boundaries, blocks are turned over in registers and streamed as soon as they are there;
// else a turned tile is made first, whose rows are long enough to have few ragged ends.
template <class T>
void Pairs<T>::fill_mirrored(Scratch<T>& s, Columns c, const Externals<T>& externals, T* corner,
                             T* mirror, Size ld, bool stream) const {
  const int lanes = tiles_.lanes;
  const bool aligned = reinterpret_cast<std::uintptr_t>(mirror) % (lanes * sizeof(T)) == 0 &&
                       ld % lanes == 0 && s.rows % lanes == 0 && stream;
  const T* tile = s.registers[0].data();
  make_tile(s, c, externals, [&](int first, int count, const T* strip) {
    tiles_.place(strip, c.ld, count, c.count, corner + first * ld, ld, stream);
    for (int i = first / lanes * lanes; aligned && i + lanes <= first + count; i += lanes) {
      tiles_.stream_turned(tile + i * c.ld, c.ld, c.count, mirror + i, ld);
    }
  });
  if (aligned) return;
  if (s.turned.size() == 0) s.turned = Buffer<T>(kTile * kTile);
  tiles_.transpose(tile, c.ld, s.rows, c.count, s.turned.data(), kTile);
  tiles_.place(s.turned.data(), kTile, c.count, s.rows, mirror, ld, stream);
}

// --- products --------------------------------------------------------------------------------

template <class T>
void Pairs<T>::multiply(RowSet set, const Externals<T>& externals, const double* v, int vectors,
                        double* out, Work work) {
  require_ready(externals);
  const PackedVectors<T> right =
      pack_vectors<T>(v, columns_, vectors, nullptr, tiles_.lanes);
  const Size across = column_tiles(), down = row_tiles(set), size = set.count * vectors;
  const Size wanted = kProductTasks / std::max<Size>(down, 1);
  const Size parts = std::clamp<Size>(wanted, 1, std::max<Size>(across, 1));
  Buffer<double> sums(parts * size);
  std::fill_n(sums.data(), sums.size(), 0.0);
  Team team(*this, work);
  const auto task = [&](Size number, int worker) {
    Scratch<T>& s = team.member(worker);
    enter_rows(s, set, number / parts);
    const Size part = number % parts;
    double* rows_out = sums.data() + part * size + s.row_tile * kTile * vectors;
    for (Size tile = part * across / parts; tile < (part + 1) * across / parts; ++tile) {
      if (team.stopped(worker)) return;
      const Columns c = columns_of(tile);
      make_tile(s, c, externals, [&](int first, int count, const T* strip) {
        tiles_.multiply({strip, c.ld, count, c.count, right.at(c.begin), right.width, vectors,
                         rows_out + first * vectors, vectors});
      });
    }
  };
  parallel_for(down * parts, task, work.threads, *work.poll);
  std::copy_n(sums.data(), size, out);
  for (Size i = size; i < sums.size(); ++i) out[i % size] += sums[i];
}

template <class T>
void Pairs<T>::multiply_symmetric(const double* v, int vectors, double* out, Work work) {
  const std::vector<double> scales = column_scales(v, columns_, vectors);
  const PackedVectors<T> right =
      pack_vectors<T>(v, columns_, vectors, scales.data(), tiles_.lanes);
  const Size width = right.per_row();
  const RowSet all{nullptr, 0, rows_};
  const Externals<T> none;
  require_ready(none);
  std::fill_n(out, rows_ * vectors, 0.0);
  Team team(*this, work);
  const auto tile = [&](Scratch<T>& s, Size column_tile) {
    const Columns c = columns_of(column_tile);
    const Size first_row = s.row_tile * kTile;
    double* rows_out = out + first_row * vectors;
    make_tile(s, c, none, [&](int first, int count, const T* strip) {
      double* to = rows_out + first * vectors;
      if (s.row_tile == column_tile) {
        tiles_.multiply({strip, c.ld, count, c.count, right.at(c.begin), right.width, vectors,
                         to, vectors});
      } else {
        tiles_.multiply_both({strip, c.ld, count, c.count, right.at(c.begin),
                              right.of_rows(first_row + first), right.width, vectors, to, vectors,
                              s.sums.data()});
      }
    });
    if (s.row_tile != column_tile) {
      tiles_.collect(s.sums.data(), right.width, c.count, vectors, out + c.begin * vectors);
    }
  };
  Tournament(column_tiles())
      .run(work, [&](Size row, Size rows_end, Size column, Size columns_end, int worker) {
        Scratch<T>& s = team.member(worker);
        if (s.sums.size() < kTile * width) s.sums = zeros<T>(kTile * width);
        for (Size i = row; i < rows_end; ++i) {
          enter_rows(s, all, i);
          for (Size j = row == column ? i : column; j < columns_end; ++j) {
            if (team.stopped(worker)) return;
            tile(s, j);
          }
        }
      });
  for (Size i = 0; i < rows_; ++i) {
    for (int c = 0; c < vectors; ++c) out[i * vectors + c] *= scales[c];
  }
}

// --- visits ----------------------------------------------------------------------------------

template <class T>
void Pairs<T>::visit(RowSet set, const Externals<T>& externals, bool upper,
                     const std::function<void(const Seen<T>&)>& see, Work work) {
  require_ready(externals);
  Team team(*this, work);
  const Size across = column_tiles();
  const auto task = [&](Size tile, int worker) {
    if (upper && tile % across < tile / across) return;
    Scratch<T>& s = team.member(worker);
    enter_rows(s, set, tile / across);
    const Columns c = columns_of(tile % across);
    make_tile(s, c, externals, [](int, int, const T*) {});
    see({s.row_tile * kTile, c.begin, s.rows, c.count, s.registers[0].data(), c.ld, worker});
  };
  parallel_for(row_tiles(set) * across, task, work.threads, *work.poll);
}

template class Pairs<float>;
template class Pairs<double>;

}  // namespace mercer
