"""CUDA texts of descents, compiled as C++ and run by a thread alone: no card is needed."""

import ctypes
import subprocess
from functools import cache

import torch

from mercer.backends.torch.svm import rounds
from mercer.backends.torch.svm.cuda import FOLLOW, SOLVE, follow_text, solve_text

# what CUDA means with one thread: nobody to wait for, and nobody to hear from
SHIM = r"""
#include <algorithm>
#include <cmath>
#include <cstring>
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __syncthreads()
#define __syncwarp()
#define __ldg(p) (*(p))
#define __fdividef(a, b) ((a) / (b))
#define __shfl_xor_sync(mask, x, o) (x)
#define __shfl_sync(mask, x, o) (x)
static struct { int x; } threadIdx;
static struct { int x, y; } blockIdx;
static float between[1 << 12];
static double __longlong_as_double(long long i) { double f; std::memcpy(&f, &i, 8); return f; }
static unsigned __float_as_uint(float f) { unsigned i; std::memcpy(&i, &f, 4); return i; }
static float __uint_as_float(unsigned i) { float f; std::memcpy(&f, &i, 4); return f; }
static int atomicAdd(int *p, int by) { int old = *p; *p += by; return old; }
using std::fmax; using std::fmin; using std::min;
extern "C" void place(int x, int y, float left) {
  blockIdx.x = x; blockIdx.y = y;
  std::fill(between, between + (1 << 12), left);
}
"""


class Alone:
    """A kernel whose blocks run one after another, each by one thread.

    Shared memory begins as whatever was left there: NaN, unless a test says otherwise.
    """

    left = float("nan")

    def __init__(self, folder, name, kind, text):
        source, library = folder / f"{name}{kind}.cpp", folder / f"{name}{kind}.so"
        source.write_text(SHIM + text.replace("extern __shared__ float between[];", ""))
        command = ["g++", "-O1", "-w", "-shared", "-fPIC", "-o", library, source]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(library))
        self.run = getattr(self.library, name)

    def __call__(self, grid, block, args, shared_mem=0):
        kinds = {int: ctypes.c_int, float: ctypes.c_double}
        given = [
            ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else kinds[type(a)](a) for a in args
        ]
        for y in range(grid[1]):
            for x in range(grid[0]):
                self.library.place(x, y, ctypes.c_float(self.left))
                self.run(*given)


def compiled(folder, size):
    """Return what stands for both compilers, for sets of a size."""

    @cache
    def follow(threads, size, sums, tube, card):
        text = follow_text(1, 1, size=size, sums=sums, tube=tube, loads=4)
        return Alone(folder, FOLLOW, f"{size}{sums}{tube}", text)

    @cache
    def solve(size, sums, tube, shifted, card):
        text = solve_text(1, 1, size=size, sums=sums, tube=tube, shifted=shifted)
        return Alone(folder, SOLVE, f"{size}{sums}{tube}{shifted}", text)

    return size, follow, solve


def descend_alone(monkeypatch, size, follow, solve):
    """Let descents run by these, in narrow groups, on any device."""
    monkeypatch.setattr(rounds, "_size_of_sets", lambda device: size)
    monkeypatch.setattr(rounds, "_NARROWEST", 4)
    monkeypatch.setattr(rounds, "_follow_kernel", follow)
    monkeypatch.setattr(rounds, "_solve_kernel", solve)
