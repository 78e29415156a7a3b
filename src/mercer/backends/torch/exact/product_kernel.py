"""K V in float64 as one CUDA kernel: products of rows on tensor cores, the formula, and the sum.

A block of threads holds a tile of rows and walks over tiles of columns. Products of a tile are
made by float64 tensor cores, and what a formula makes of them never leaves the registers, unless K
itself is asked for.
Squared distances that few digits are left of are added up anew from differences, by the thread that
meets one: nothing is to be looked at by the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mercer.backends.torch.exact.kernel_parts import CARD, EXPONENTIAL, NUMBERS

PRODUCT = "product"
LANES = 32
_DEPTH = 96  # features that a tile holds at most; more are compared in several chunks
_NEAR = 6  # bits: what a squared distance made of products may lose
# Doubles: a row of a tile begins half of all banks after the row before, so that 8 threads, which
# read two rows, read all banks.
_BANKS, _SHIFT = 16, 8


class Store(IntEnum):
    """What becomes of the entries of K beside their product with V."""

    NOTHING = 0
    FLOAT64 = 1
    PLANES = 2  # float32, and 16 more bits: see `planes.py`


@dataclass(frozen=True)
class Tile:
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


def shared_bytes(tile: Tile, depth: Depth, targets: int) -> int:
    """Return what a block of threads shares: rows, columns, and two turns of what columns carry."""
    held = (tile.rows + tile.columns) * depth.stride
    return 8 * (held + 2 * tile.columns * (1 + targets) + tile.rows * tile.across * targets)


def product_text(
    formula: str, constants: int, tile: Tile, depth: Depth, targets: int, store: Store, apart: bool
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
        + _KERNEL
    )


_KERNEL = r"""
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
