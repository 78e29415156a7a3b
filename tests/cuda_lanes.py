"""CUDA texts whose threads work together, compiled as C++: each of them is a thread of the host."""

import ctypes
import subprocess

import torch

# what CUDA means where all threads of a block are real, and blocks run one after another
SHIM = r"""
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define SHARED static double held[1 << 15];
struct Place { int x, y; };
static thread_local Place threadIdx;
static Place blockIdx;
static std::barrier<> *all, *warps[32];
static double heard[32][32][8];
struct float2 { float x, y; }; struct float4 { float x, y, z, w; };
struct double2 { double x, y; }; struct short2 { short x, y; }; struct short4 { short x, y, z, w; };
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static double2 make_double2(double x, double y) { return {x, y}; }
static short2 make_short2(short x, short y) { return {x, y}; }
static short4 make_short4(short x, short y, short z, short w) { return {x, y, z, w}; }
static double __longlong_as_double(long long i) { double f; std::memcpy(&f, &i, 8); return f; }
static long long __double_as_longlong(double f) { long long i; std::memcpy(&i, &f, 8); return i; }
static int __double2hiint(double f) { return (int)(__double_as_longlong(f) >> 32); }
static int __double2loint(double f) { return (int)__double_as_longlong(f); }
static double __hiloint2double(int high, int low) {
  return __longlong_as_double(((long long)high << 32) | (unsigned)low);
}
static int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }
static void __syncthreads() { all->arrive_and_wait(); }
using std::fma; using std::max; using std::min; using std::isinf;
static int lane() { return threadIdx.x % 32; }
static int warp() { return threadIdx.x / 32; }
static void say(int i, double x) { heard[warp()][lane()][i] = x; }
static double hear(int of, int i) { return heard[warp()][of][i]; }
static void together() { warps[warp()]->arrive_and_wait(); }
static double __shfl_xor_sync(unsigned, double x, int o) {
  together(); say(0, x); together();
  return hear(lane() ^ o, 0);
}
// c (16 x 8) += a (16 x 4k) b (4k x 8), each thread with its entries as PTX deals them out
static void multiply(double *c, const double *a, const double *b, int fours) {
  together();
  for (int i = 0; i < 2 * fours; ++i) say(i, a[i]);
  for (int i = 0; i < fours; ++i) say(4 + i, b[i]);
  together();
  int g = lane() / 4, q = lane() % 4;
  for (int h = 0; h < 2; ++h)
    for (int s = 0; s < 2; ++s)
      for (int k = 0; k < 4 * fours; ++k)
        c[2 * h + s] = fma(hear(4 * g + k % 4, 2 * (k / 4) + h),
                           hear(4 * (2 * q + s) + k % 4, 4 + k / 4), c[2 * h + s]);
}
static void multiply8(double *c, const double *a, const double *b) { multiply(c, a, b, 2); }
static void multiply4(double *c, const double *a, double b) { multiply(c, a, &b, 1); }
static void copy16(double *to, const double *from) { std::memcpy(to, from, 16); }
static void copied() {}
"""


class Lanes:
    """A kernel whose threads run side by side.

    Parameters
    ----------
    folder : Path
        Where files go.
    name : str
        Of the kernel.
    text : str
        Without the words that only a card knows.
    arguments : str
        Kinds of arguments, as C names them, with commas between.
    """

    def __init__(self, folder, name, text, arguments):
        folder.mkdir(exist_ok=True)
        kinds = [kind.strip() for kind in arguments.split(",")]
        given = ", ".join(f"{kind} a{i}" for i, kind in enumerate(kinds))
        passed = ", ".join(f"a{i}" for i in range(len(kinds)))
        start = f"""
extern "C" void start(int width, int height, int threads, {given}) {{
  std::barrier<> block(threads);
  std::vector<std::barrier<> *> each;
  for (int w = 0; w < threads / 32; ++w) each.push_back(warps[w] = new std::barrier<>(32));
  all = &block;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {{
      blockIdx = {{x, y}};
      std::vector<std::thread> running;
      for (int t = 0; t < threads; ++t)
        running.emplace_back([=] {{ threadIdx = {{t, 0}}; {name}({passed}); }});
      for (auto &one : running) one.join();
    }}
  for (auto *one : each) delete one;
}}
"""
        source, library = folder / "lanes.cpp", folder / "lanes.so"
        source.write_text(SHIM + text + start)
        command = ["g++", "-O1", "-w", "-std=c++20", "-pthread", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", library, source], check=True)
        self.start = ctypes.CDLL(str(library)).start

    def __call__(self, grid, block, args, shared_mem=0):
        kinds = {int: ctypes.c_int, float: ctypes.c_double}
        given = [
            ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else kinds[type(a)](a) for a in args
        ]
        self.start(grid[0], grid[1], block[0], *given)
