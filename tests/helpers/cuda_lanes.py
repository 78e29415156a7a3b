"""CUDA texts whose threads work together, compiled as C++: they take turns at every barrier."""

import ctypes
import subprocess

import torch

# what CUDA means where all threads of a block have a stack of their own, and blocks run one after
# another; who waits at a barrier hands over to the next
SHIM = r"""
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ucontext.h>
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define SHARED static double held[1 << 15];
struct Place { int x, y; };
static Place threadIdx, blockIdx;
static ucontext_t lanes[1024], home;
static char stacks[1024][1 << 16];
static bool ended[1024];
static int running;
static int next_of(int me) {
  for (int k = 1; k <= running; ++k)
    if (!ended[(me + k) % running]) return (me + k) % running;
  return -1;
}
struct Barrier {
  int size, arrived, turn;
  void wait() {
    int mine = turn, me = threadIdx.x;
    if (++arrived == size) { arrived = 0; ++turn; return; }
    while (mine == turn) {
      int other = next_of(me);
      threadIdx.x = other;
      swapcontext(&lanes[me], &lanes[other]);
      threadIdx.x = me;
    }
  }
};
static Barrier all, warps[32];
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
static void __syncthreads() { all.wait(); }
using std::fma; using std::max; using std::min; using std::isinf;
static int lane() { return threadIdx.x % 32; }
static int warp() { return threadIdx.x / 32; }
static void say(int i, double x) { heard[warp()][lane()][i] = x; }
static double hear(int of, int i) { return heard[warp()][of][i]; }
static void together() { warps[warp()].wait(); }
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
    """A kernel whose threads take turns.

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
        names = "; ".join(f"static {kind} a{i}" for i, kind in enumerate(kinds))
        start = f"""
{names};
static void lane_alone() {{
  {name}({passed});
  int me = threadIdx.x, other;
  ended[me] = true;
  other = next_of(me);
  if (other < 0) setcontext(&home);
  threadIdx.x = other;
  setcontext(&lanes[other]);
}}
extern "C" void start(int width, int height, int threads, {given.replace(" a", " b")}) {{
  {" ".join(f"a{i} = b{i};" for i in range(len(kinds)))}
  running = threads;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {{
      blockIdx = {{x, y}};
      all = {{threads, 0, 0}};
      for (int w = 0; w < threads / 32; ++w) warps[w] = {{32, 0, 0}};
      for (int t = 0; t < threads; ++t) {{
        ended[t] = false;
        getcontext(&lanes[t]);
        lanes[t].uc_stack.ss_sp = stacks[t];
        lanes[t].uc_stack.ss_size = sizeof stacks[t];
        makecontext(&lanes[t], lane_alone, 0);
      }}
      threadIdx.x = 0;
      swapcontext(&home, &lanes[0]);
    }}
}}
"""
        source, library = folder / "lanes.cpp", folder / "lanes.so"
        source.write_text(SHIM + text + start)
        command = ["g++", "-O1", "-w", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", library, source], check=True)
        self.start = ctypes.CDLL(str(library)).start

    def __call__(self, grid, block, args, shared_mem=0):
        kinds = {int: ctypes.c_int, float: ctypes.c_double}
        given = [
            ctypes.c_void_p(a.data_ptr()) if torch.is_tensor(a) else kinds[type(a)](a) for a in args
        ]
        self.start(grid[0], grid[1], block[0], *given)
