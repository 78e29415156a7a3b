"""CUDA source of float64 products on tensor cores: formulas, parts and the two kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from mercer.backends.lowering import Code, FlatProgram, Op

# --- formulas ------------------------------------------------------------------------------------
#
# From a flat program of one leaf to the body of a CUDA function: r0 in, an entry of K out.

_MOST_CONSTANTS = 16  # arguments of a kernel: sums of more terms are evaluated in blocks


@dataclass(frozen=True)
class Formula:
    """An entry of K as a function of one statistic.

    Attributes
    ----------
    body : str
        Statements of C that return it, of r0 and c0, c1, ...; the same for all scales of a search.
    constants : tuple of float
        What c0, c1, ... are.
    """

    body: str
    constants: tuple[float, ...]


def formula_of(program: FlatProgram) -> Formula | None:
    """Write the formula; None where it reads more than one statistic, or what Python evaluates."""
    codes = {Code(op.code) for op in program.ops}
    if len(program.leaves) != 1 or not codes <= set(_VERBS):
        return None
    text = _Text(program)
    lines = [f"double r{i} = 0.0;" for i in range(1, program.registers)]
    for op in program.ops:
        lines.append(f"r{op.out} = {_VERBS[Code(op.code)](op, text)};")
    if len(text.constants) > _MOST_CONSTANTS:
        return None
    return Formula(" ".join([*lines, "return r0;"]), tuple(text.constants))


class _Text:
    def __init__(self, program: FlatProgram) -> None:
        self.program = program
        self.constants: list[float] = []

    def constant(self, value: float) -> str:
        self.constants.append(float(value))
        return f"c{len(self.constants) - 1}"

    def affine(self, op: Op) -> str:
        if (op.c0, op.c1) == (1.0, 0.0):
            return f"r{op.a}"
        return f"fma({self.constant(op.c0)}, r{op.a}, {self.constant(op.c1)})"


_Verb = Callable[[Op, _Text], str]


def _applied(function: str) -> _Verb:
    return lambda op, text: f"{function}({text.affine(op)})"


def _sum(op: Op, text: _Text) -> str:
    second = f"fma({text.constant(op.c1)}, r{op.b}, {text.constant(op.c2)})"
    return f"fma({text.constant(op.c0)}, r{op.a}, {second})"


def _ratio(op: Op, text: _Text) -> str:
    return f"(r{op.a} == 0.0 && r{op.b} == 0.0 ? 1.0 : r{op.a} / r{op.b})"


def _polynomial(op: Op, text: _Text) -> str:
    x = text.affine(op)
    *lower, highest = text.program.coefficients[op.item : op.item + op.items]
    total = text.constant(highest)
    for coefficient in reversed(lower):
        total = f"fma({total}, {x}, {text.constant(coefficient)})"
    return total


_VERBS: dict[Code, _Verb] = {
    Code.FILL: lambda op, text: text.constant(op.c0),
    Code.AFFINE: lambda op, text: text.affine(op),
    Code.SUM: _sum,
    Code.PRODUCT: lambda op, text: f"{text.constant(op.c0)} * r{op.a} * r{op.b}",
    Code.RATIO: _ratio,
    Code.EXP: _applied("exponential"),
    Code.SQRT: _applied("sqrt"),
    Code.TANH: _applied("tanh"),
    Code.POWER: lambda op, text: f"pow({text.affine(op)}, {text.constant(op.c2)})",
    Code.WHOLE_POWER: lambda op, text: f"pow({text.affine(op)}, {text.constant(op.item)})",
    Code.POLYNOMIAL: _polynomial,
}


# --- kernel parts --------------------------------------------------------------------------------
#
# What the kernels are made of, in CUDA: tensor cores, copies, exponentials, and 40 bits.

# What only a card knows: tests put their own words in its place.
CARD = r"""
__device__ __forceinline__ void multiply8(double *c, const double *a, const double *b) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%0,%1,%2,%3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+d"(c[2 * h]), "+d"(c[2 * h + 1]) : "d"(a[2 * k + h]), "d"(b[k]));
#endif
}

__device__ __forceinline__ void multiply4(double *c, const double *a, double b) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[2 * h]), "+d"(c[2 * h + 1]) : "d"(a[h]), "d"(b));
}

__device__ __forceinline__ void copy16(double *to, const double *from) {
  unsigned where = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(where), "l"(from));
}

__device__ __forceinline__ void copied() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#define SHARED extern __shared__ double held[];
"""

NUMBERS = r"""
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < count; ++i)

typedef long long wide_int;

// 16 bits behind those of a float: the distance of bit patterns, which are in the order of numbers
__device__ __forceinline__ short rest(double entry, float high) {
  if (!(fabsf(high) >= 1.1754944e-38f) || isinf(high)) return 0;
  wide_int more = __double_as_longlong(entry) - __double_as_longlong((double)high);
  return (short)min((more + 4096) >> 13, (wide_int)32767);
}

// the number of which this is the rest
__device__ __forceinline__ double joined(float high, short low) {
  return __longlong_as_double(__double_as_longlong((double)high) + ((wide_int)low << 13));
}
"""

# 2^(i/64) 2^k (1 + r + ...): a table in shared memory takes five terms of the series away.
EXPONENTIAL = r"""
__shared__ double table[64];

__device__ __forceinline__ void fill_table() {
  if (threadIdx.x < 32)
    for (int i = threadIdx.x; i < 64; i += 32) table[i] = exp2(i / 64.0);
}

// exp without a branch, so that many are under way at once; nothing below 2^-1022
__device__ __forceinline__ double exponential(double x) {
  if (fabs(x) > 746.0) x = copysign(746.0, x);
  double whole = fma(x, 92.332482616893657, 6755399441055744.0);
  int steps = __double2loint(whole);
  double part = table[steps & 63];
  whole -= 6755399441055744.0;
  double r = fma(whole, -0.6931471803691238 / 64, x);
  r = fma(whole, -1.9082149292705877e-10 / 64, r);
  double p = fma(r, 1.0 / 120, 1.0 / 24);
  p = fma(p, r, 1.0 / 6);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0) * r;
  int power = max(-1023, min(1024, steps >> 6));
  return __hiloint2double((1023 + power) << 20, 0) * fma(part, p, part);
}
"""


# --- product kernel ------------------------------------------------------------------------------
#
# K V in float64 as one CUDA kernel: products of rows on tensor cores, the formula, and the sum.
#
# A block of threads holds a tile of rows and walks over tiles of columns. Products of a tile are
# made by float64 tensor cores, and what a formula makes of them never leaves the registers,
# unless K itself is asked for. Squared distances that few digits are left of are added up anew
# from differences, by the thread that meets one: nothing is to be looked at by the host.

PRODUCT = "product"
LANES = 32
_DEPTH = 96  # features that a tile holds at most; more are compared in several chunks
_NEAR = 6  # bits: what a squared distance made of products may lose
# Doubles: a row of a tile begins half of all banks after the row before, so that 8 threads, which
# read two rows, read all banks.
_BANKS, _SHIFT = 16, 8


class EntryStore(IntEnum):
    """What becomes of the entries of K beside their product with V."""

    NOTHING = 0
    FLOAT64 = 1
    PLANES = 2  # float32, and 16 more bits: see `products.py`


@dataclass(frozen=True)
class BlockTile:
    """How a block of threads is cut.

    Attributes
    ----------
    rows, columns : int
        Of a tile.
    down, across : int
        Warps.
    blocks : int
        That a multiprocessor is to hold at once.
    """

    rows: int = 64
    columns: int = 64
    down: int = 4
    across: int = 2
    blocks: int = 2

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return LANES * self.down * self.across


@dataclass(frozen=True)
class Depth:
    """How features are cut into chunks that a tile holds.

    Examples
    --------
    >>> Depth.of(90), Depth.of(784).padded
    (Depth(width=92, chunks=1), 792)
    """

    width: int
    chunks: int

    @classmethod
    def of(cls, features: int) -> Depth:
        """Cut so many features; products are made of four at a time."""
        chunks = max(1, -(-features // _DEPTH))
        return cls(max(1, -(-features // (4 * chunks))) * 4, chunks)

    @property
    def padded(self) -> int:
        """Features with zeros behind them."""
        return self.width * self.chunks

    @property
    def stride(self) -> int:
        """Doubles from a row of a tile to the next."""
        return self.width + (_SHIFT - self.width) % _BANKS


def product_shared_bytes(tile: BlockTile, depth: Depth, targets: int) -> int:
    """Return what a block of threads shares: rows, columns, and two turns of what columns carry."""
    held = (tile.rows + tile.columns) * depth.stride
    return 8 * (held + 2 * tile.columns * (1 + targets) + tile.rows * tile.across * targets)


def product_text(
    formula: str,
    constants: int,
    tile: BlockTile,
    depth: Depth,
    targets: int,
    store: EntryStore,
    apart: bool,
) -> str:
    """Write the kernel.

    Parameters
    ----------
    formula : str
        Body of a function that returns an entry of K, given r0 and constants c0, c1, ...
    constants : int
        How many of these.
    tile : Tile
        What a block of threads does.
    depth : Depth
        Features.
    targets : int
        Columns of V.
    store : Store
        What is written of K.
    apart : bool
        Whether r0 is a squared distance, or a product of rows.
    """
    named = {
        "BM": tile.rows,
        "BN": tile.columns,
        "DOWN": tile.down,
        "ACROSS": tile.across,
        "BLOCKS": tile.blocks,
        "WIDTH": depth.width,
        "CHUNKS": depth.chunks,
        "STRIDE": depth.stride,
        "T": targets,
        "STORE": int(store),
        "APART": int(apart),
        "NEAR": _NEAR,
    }
    given = "".join(f", double c{i}" for i in range(constants))
    passed = "".join(f", c{i}" for i in range(constants))
    head = "".join(f"#define {name} {value}\n" for name, value in named.items())
    return (
        head
        + f"#define GIVEN {given}\n#define PASSED {passed}\n"
        + CARD
        + NUMBERS
        + EXPONENTIAL
        + f"__device__ __forceinline__ double value(double r0 GIVEN) {{ {formula} }}\n"
        + _PRODUCT_KERNEL_KERNEL
    )


_PRODUCT_KERNEL_KERNEL = r"""
#define THREADS (32 * DOWN * ACROSS)
#define DEPTH (WIDTH * CHUNKS)
#define MT (BM / DOWN / 16)
#define NT (BN / ACROSS / 8)

__device__ __forceinline__ void take(double *to, const double *from, int first, int count,
                                     int height, int chunk) {
  for (int e = threadIdx.x; e < height * (WIDTH / 2); e += THREADS) {
    int row = e / (WIDTH / 2), pair = e % (WIDTH / 2), at = min(first + row, count - 1);
    copy16(to + row * STRIDE + 2 * pair, from + (wide_int)at * DEPTH + chunk * WIDTH + 2 * pair);
  }
}

__device__ __forceinline__ double differences(const double *x, const double *y) {
  double total = 0.0;
#pragma unroll 4
  for (int k = 0; k < DEPTH; ++k) {
    double apart = x[k] - y[k];
    total = fma(apart, apart, total);
  }
  return total;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
product(int n, int m, int span, const double *X, const double *Y, const double *HX,
        const double *HY, const double *V, double *OUT, void *K, short *LOW, int wide GIVEN) {
  SHARED
  fill_table();
  double *xs = held, *ys = xs + BM * STRIDE, *hs = ys + BN * STRIDE, *vs = hs + 2 * BN;
  double *sums = vs + 2 * BN * T;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, q = lane % 4;
  int top = (warp / ACROSS) * (BM / DOWN), left = (warp % ACROSS) * (BN / ACROSS);
  int first = blockIdx.x * BM, begin = blockIdx.y * span, end = min(begin + span, m);
  const double *xa = xs + (top + g) * STRIDE + 2 * q, *yb = ys + (left + g) * STRIDE + 2 * q;

  double hx[MT][2], total[MT][2][T ? T : 1];
  EACH(i, MT)
    EACH(h, 2) {
      hx[i][h] = APART ? HX[min(first + top + 16 * i + 8 * h + g, n - 1)] : 0.0;
      EACH(t, T) total[i][h][t] = 0.0;
    }
  if (CHUNKS == 1) {
    take(xs, X, first, n, BM, 0);
    if (begin < end) take(ys, Y, begin, m, BN, 0);
  }
  for (int start = begin, turn = 0; start < end; start += BN, turn ^= 1) {
    for (int j = threadIdx.x; j < BN; j += THREADS) {
      if (APART) hs[turn * BN + j] = HY[min(start + j, m - 1)];
      EACH(t, T)
        vs[(turn * BN + j) * T + t] = start + j < end ? V[(wide_int)(start + j) * T + t] : 0.0;
    }
    unsigned near = 0;
    double c[MT][NT][4];
    EACH(i, MT)
      EACH(j, NT)
        EACH(e, 4) c[i][j][e] = 0.0;
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      if (CHUNKS > 1) {
        __syncthreads();
        take(xs, X, first, n, BM, chunk);
        take(ys, Y, start, m, BN, chunk);
      }
      copied();
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k + 8 <= WIDTH; k += 8) {
        double a[MT][4], b[NT][2];
        EACH(i, MT)
          EACH(h, 2) {
            double2 two = *(const double2 *)(xa + (16 * i + 8 * h) * STRIDE + k);
            a[i][h] = two.x;
            a[i][2 + h] = two.y;
          }
        EACH(j, NT) {
          double2 two = *(const double2 *)(yb + 8 * j * STRIDE + k);
          b[j][0] = two.x;
          b[j][1] = two.y;
        }
        EACH(i, MT)
          EACH(j, NT) multiply8(c[i][j], a[i], b[j]);
      }
      if (WIDTH % 8) {  // four are left: one for each thread of four
        double a[MT][2], b[NT];
        EACH(i, MT)
          EACH(h, 2) a[i][h] = xa[(16 * i + 8 * h) * STRIDE + WIDTH - 4 - q];
        EACH(j, NT) b[j] = yb[8 * j * STRIDE + WIDTH - 4 - q];
        EACH(i, MT)
          EACH(j, NT) multiply4(c[i][j], a[i], b[j]);
      }
    }
    if (CHUNKS == 1) {
      __syncthreads();  // the next columns come while this tile is evaluated
      if (start + BN < end) take(ys, Y, start + BN, m, BN, 0);
    }
    EACH(j, NT)
      EACH(s, 2) {
        int column = left + 8 * j + 2 * q + s;
        double hy = APART ? hs[turn * BN + column] : 0.0;
        EACH(i, MT)
          EACH(h, 2) {
            double r = c[i][j][2 * h + s];
            bool lost = false;
            if (APART) {
              double both = hx[i][h] + hy;
              r = fma(-2.0, r, both);
              // by upper halves: few bits left, or below zero. Such an entry is nothing here, and
              // added below: a branch would keep the others waiting for one another
              lost = __double2hiint(r) < __double2hiint(both) - (NEAR << 20);
              near |= (unsigned)lost << (4 * (j * MT + i) + 2 * h + s);
            }
            r = value(r PASSED);
            r = lost ? 0.0 : r;
            c[i][j][2 * h + s] = r;
            EACH(t, T) total[i][h][t] = fma(r, vs[(turn * BN + column) * T + t], total[i][h][t]);
          }
      }
    if (STORE) {
      EACH(i, MT)
        EACH(h, 2) {
          int row = first + top + 16 * i + 8 * h + g;
          EACH(j, NT) {
            int column = start + left + 8 * j + 2 * q;
            if (row >= n || column >= wide) continue;
            double one = column < m ? c[i][j][2 * h] : 0.0;
            double two = column + 1 < m ? c[i][j][2 * h + 1] : 0.0;
            wide_int at = (wide_int)row * wide + column;
            if (STORE == 1) {
              *(double2 *)((double *)K + at) = make_double2(one, two);
            } else {
              float2 high = make_float2((float)one, (float)two);
              *(float2 *)((float *)K + at) = high;
              *(short2 *)(LOW + at) = make_short2(rest(one, high.x), rest(two, high.y));
            }
          }
        }
    }
    for (; near; near &= near - 1) {
      int e = __ffs(near) - 1, i = e / 4 % MT, j = e / 4 / MT, h = e / 2 % 2;
      int row = top + 16 * i + 8 * h + g, column = left + 8 * j + 2 * q + e % 2;
      double r = value(differences(X + (wide_int)min(first + row, n - 1) * DEPTH,
                                   Y + (wide_int)min(start + column, m - 1) * DEPTH) PASSED);
      EACH(t, T) {
        double more = r * vs[(turn * BN + column) * T + t];
        EACH(a, MT) EACH(b, 2) total[a][b][t] += a == i && b == h ? more : 0.0;
      }
      if (STORE && first + row < n && start + column < m) {
        wide_int at = (wide_int)(first + row) * wide + start + column;
        if (STORE == 1) {
          ((double *)K)[at] = r;
        } else {
          ((float *)K)[at] = (float)r;
          LOW[at] = rest(r, (float)r);
        }
      }
    }
  }
  if (T == 0) return;
  EACH(i, MT)
    EACH(h, 2)
      EACH(t, T) {
        double x = total[i][h][t];
        x += __shfl_xor_sync(0xffffffffu, x, 1);
        x += __shfl_xor_sync(0xffffffffu, x, 2);
        if (!q) sums[((top + 16 * i + 8 * h + g) * ACROSS + warp % ACROSS) * T + t] = x;
      }
  __syncthreads();
  for (int e = threadIdx.x; e < BM * T; e += THREADS) {
    int row = e / T, t = e % T;
    double x = 0.0;
    for (int w = 0; w < ACROSS; ++w) x += sums[(row * ACROSS + w) * T + t];
    if (first + row < n) OUT[((wide_int)blockIdx.y * n + first + row) * T + t] = x;
  }
}
"""


# --- trip kernel ---------------------------------------------------------------------------------
#
# K'S (y - K v) of rows stored to 40 bits as one CUDA kernel: they are read once, sums in float64.
#
# A block of threads holds v in shared memory and its part of the sums in registers. Each thread
# has the same columns of all rows, and the next row is on its way while this one is multiplied.

TRIP = "trip"
THREADS = 512
_EACH = 4  # columns that a thread loads at a time
_PIECE = _EACH * THREADS
MOST = 5 * _PIECE  # columns: with more, registers hold no row beside the sums


def pieces(m: int) -> int:
    """Return how many pieces of columns a block of threads has.

    Examples
    --------
    >>> pieces(10000), pieces(2048)
    (5, 1)
    """
    return max(1, -(-m // _PIECE))


def trip_shared_bytes(m: int) -> int:
    """Return what v takes."""
    return 8 * _PIECE * pieces(m)


def trip_text(m: int, there: bool, threads: int = THREADS) -> str:
    """Write the kernel of so many columns; without the way there, that of K'S y and K's."""
    named = {"PIECES": max(1, -(-m // (_EACH * threads))), "THREADS": threads, "THERE": int(there)}
    return (
        "".join(f"#define {name} {value}\n" for name, value in named.items())
        + NUMBERS
        + _TRIP_KERNEL_KERNEL
    )


_TRIP_KERNEL_KERNEL = r"""
#ifndef SHARED
#define SHARED extern __shared__ double held[];
#endif
#define PIECE (4 * THREADS)
#define INSIDE(p) (p * PIECE + 4 * thread < wide)

extern "C" __global__ void __launch_bounds__(THREADS, 1)
trip(int n, int height, int wide, const float *HIGH, const short *LOW, const double *V,
     const double *S, const double *Y, double *LEFT, double *OUT) {
  SHARED
  __shared__ double between[2][THREADS / 32];
  int thread = threadIdx.x;
  wide_int first = (wide_int)blockIdx.x * height, last = min(first + height, (wide_int)n);
  if (THERE) {
    for (int c = thread; c < PIECE * PIECES; c += THREADS) held[c] = c < wide ? V[c] : 0.0;
    __syncthreads();
  }
  // rows are walked by pointers: places of pieces are constants beside them
  const float *high_at = HIGH + first * wide + 4 * thread;
  const short *low_at = LOW + first * wide + 4 * thread;
  double sums[PIECES][4], mass[PIECES][4];
  float4 high[PIECES];
  short4 low[PIECES];
  EACH(p, PIECES) {
    EACH(e, 4) sums[p][e] = mass[p][e] = 0.0;
    high[p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    low[p] = make_short4(0, 0, 0, 0);
    if (INSIDE(p) && first < last) {
      high[p] = *(const float4 *)(high_at + p * PIECE);
      low[p] = *(const short4 *)(low_at + p * PIECE);
    }
  }
  for (int row = (int)first; row < last; ++row) {
    double k[PIECES][4], left = Y[row];
    high_at += wide;
    low_at += wide;
    EACH(p, PIECES) {
      k[p][0] = joined(high[p].x, low[p].x);
      k[p][1] = joined(high[p].y, low[p].y);
      k[p][2] = joined(high[p].z, low[p].z);
      k[p][3] = joined(high[p].w, low[p].w);
      if (INSIDE(p) && row + 1 < last) {
        high[p] = *(const float4 *)(high_at + p * PIECE);
        low[p] = *(const short4 *)(low_at + p * PIECE);
      }
    }
    if (THERE) {
      double value = 0.0;
      EACH(p, PIECES) {
        const double *v = held + p * PIECE + 4 * thread;
        EACH(e, 4) value = fma(k[p][e], v[e], value);
      }
      for (int o = 16; o; o >>= 1) value += __shfl_xor_sync(0xffffffffu, value, o);
      if (thread % 32 == 0) between[row & 1][thread / 32] = value;
      __syncthreads();
      value = 0.0;
      EACH(w, THREADS / 32) value += between[row & 1][w];
      left -= value;
    }
    double s = S[row];
    left *= s;
    if (THERE && thread == 0) LEFT[row] = left;
    EACH(p, PIECES) EACH(e, 4) {
      sums[p][e] = fma(left, k[p][e], sums[p][e]);
      if (!THERE) mass[p][e] = fma(s, k[p][e], mass[p][e]);
    }
  }
  EACH(p, PIECES)
  if (INSIDE(p))
    EACH(e, 4) {
      double *out = OUT + (wide_int)blockIdx.x * wide * (THERE ? 1 : 2) + p * PIECE + 4 * thread;
      out[e] = sums[p][e];
      if (!THERE) out[wide + e] = mass[p][e];
    }
}
"""
