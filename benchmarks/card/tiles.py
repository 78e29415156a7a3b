"""Which tiles of generated kernels are fastest on a card: how those of `launch.py` were chosen.

``python3 benchmarks/card/tiles.py`` from the root of the repository; needs torch, Triton and a
card, and no installation of Mercer. Prints a line for each tile: milliseconds, 1e9 kernel values a
second, and the relative error against float64 on 512 rows.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402

from mercer.backends.torch.device import Device  # noqa: E402
from mercer.backends.torch.pairs import TorchPairs  # noqa: E402
from mercer.backends.torch.triton import launch, source  # noqa: E402
from mercer.backends.torch.triton.launch import Tile  # noqa: E402
from mercer.backends.torch.triton.source import LeafLayout, TileReduction  # noqa: E402
from mercer.expression import AbsDist, Exp, SqDist  # noqa: E402

CARD = Device("cuda:0")
BY_FEATURES = [Tile(16, 512, 4, 2, most) for most in (None, 128, 112)]  # for leaves by columns
TILES = [
    Tile(height, width, warps, stages)
    for height, width, warps in [
        (64, 64, 4),
        (64, 128, 4),
        (128, 32, 4),
        (128, 64, 4),
        (128, 64, 8),
        (128, 128, 8),
        (256, 64, 8),
    ]
    for stages in (2, 3)
]
LOAD = "v = tl.load(V + columns[:, None] * KV + wide[None, :])"
# how tiles are multiplied by several columns
MULTIPLIED = {
    "tf32x3": [LOAD, 'total = tl.dot(r0, v, total, input_precision="tf32x3")'],
    "tf32": [LOAD, 'total = tl.dot(r0, v, total, input_precision="tf32")'],
    "bfloat16 split": [
        LOAD,
        "vh = v.to(tl.bfloat16)",
        "vl = (v - vh.to(tl.float32)).to(tl.bfloat16)",
        "rh = r0.to(tl.bfloat16)",
        "rl = (r0 - rh.to(tl.float32)).to(tl.bfloat16)",
        "total = tl.dot(rh, vh, total)",
        "total = tl.dot(rh, vl, total)",
        "total = tl.dot(rl, vh, total)",
    ],
}


def milliseconds(work, repeats: int = 3) -> float:
    """Return the median of some repeats, after one that compiles."""
    work()
    torch.cuda.synchronize()
    found = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return sorted(found)[repeats // 2]


def works() -> Iterator[tuple]:
    """Return each work: what it is, the expression, rows, columns, columns of V, tiles."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 90), dtype=np.float32)
    Y = rng.standard_normal((10_000, 90), dtype=np.float32)
    wide = rng.standard_normal((30_000, 1024), dtype=np.float32)
    gaussian = Exp((-0.5 / 90) * SqDist())
    yield "vector", gaussian, X, Y, 1
    yield "L1", Exp(-1e-3 * AbsDist()), wide, wide, 1
    for k in (16, 64):
        for name, lines in MULTIPLIED.items():
            before, _, after = source._REDUCTIONS[TileReduction.MATRIX]
            source._REDUCTIONS[TileReduction.MATRIX] = (before, lines, after)
            yield f"{k} columns, {name}", gaussian, X, Y, k


def main() -> None:
    for name, expression, X, Y, k in works():
        pairs = TorchPairs(expression, X, Y, np.float32, CARD, fused=True)
        exact = TorchPairs(expression, X[:512], Y, np.float64, CARD)
        V = torch.randn(len(Y), k, device="cuda")
        wanted = exact.product(V.double(), 1 << 22)
        best = None
        tiles = TILES if k == 1 else [t for t in TILES if t.stages == 2]
        for tile in BY_FEATURES if name == "L1" else tiles:
            launch._TILES, launch._SHALLOW = dict.fromkeys(LeafLayout, (tile,)), 0
            try:
                time = milliseconds(lambda: pairs.product(V, 1 << 24))  # noqa: B023
                off = float((pairs.product(V, 0)[:512] - wanted).norm() / wanted.norm())
            except Exception as error:  # a tile that does not fit the card is no choice
                print(f"  {name}, {tuple(tile)}: {type(error).__name__} {str(error)[:80]!r}")
                continue
            rate = len(X) * len(Y) / time / 1e6
            print(f"  {name}, {tuple(tile)}: {time:.2f} ms, {rate:.0f}, {off:.1e}", flush=True)
            best = min(best or (time, tile), (time, tile))
        print(f"{name}: {best}", flush=True)


if __name__ == "__main__":
    main()
