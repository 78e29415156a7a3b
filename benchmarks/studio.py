"""Round trips of the studio: ``python benchmarks/studio.py [rows ...]``.

A message with a scene goes over a WebSocket to a studio on this machine; the machine is fitted and
certified, a surface of 200 x 200 is drawn, and the answer is read as JSON. Each trip moves one
point, so that nothing is remembered. Median and 95th percentile of the wall time, and the median of
what the process behind the page took; processor time of the surface alone stands beside it.
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "studio"))

from live import Page, studio

from mercer import SVC
from mercer.studio.drawing import Fitted, PlaneGrid, margin
from mercer.studio.limits import StudioLimits
from mercer.studio.presets import PRESETS
from mercer.studio.scenes import read_scene, rows_of

SIZES = (100, 500, 1000, 2000)
TRIPS = 40
SIDE = 200


def scene_of(n, seed=0):
    """Return moons with some overlap."""
    return PRESETS["moons"].scene(n, 0.3, seed)


def trips(page, n):
    """Return seconds of round trips, and of the process behind the page."""
    scene, outer, inner = scene_of(n), [], []
    for k in range(TRIPS + 3):
        scene["points"][k % n][0] += 0.01
        begun = time.perf_counter()
        answer, _ = page.ask("fit", scene=scene)
        outer.append(time.perf_counter() - begun)
        inner.append(answer["seconds"])
        assert answer["kind"] == "answer" and answer["status"]["ok"], answer
    return np.array(outer[3:]), np.array(inner[3:])


def surface_seconds(n, repeats=10):
    """Return processor seconds of the surface alone, and how many support vectors it has."""
    scene = read_scene(scene_of(n), StudioLimits())
    rows = rows_of(scene, lambda name: None, StudioLimits())
    machine = SVC("gaussian(0.5)", C=10.0).fit(rows.X, rows.y)
    fitted, points = Fitted(machine, rows), PlaneGrid(rows.bounds, SIDE, SIDE).points()
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        margin(fitted, points)
        found.append(time.process_time() - begun)
    return float(np.median(found)), len(machine.support_)


def main():
    """Print the table."""
    sizes = [int(one) for one in sys.argv[1:]] or SIZES
    print("| points | median | 95 % | in the process | surface (processor) | support vectors |")
    print("| --- | --- | --- | --- | --- | --- |")
    with studio() as port:
        page = Page(port)
        page.ask("fit", scene=scene_of(20))
        for n in sizes:
            outer, inner = trips(page, n)
            drawn, count = surface_seconds(n)
            middle, late = np.quantile(outer, [0.5, 0.95])
            print(
                f"| {n} | {1e3 * middle:.0f} ms | {1e3 * late:.0f} ms | "
                f"{1e3 * np.median(inner):.0f} ms | {1e3 * drawn:.0f} ms | {count} |",
                flush=True,
            )
        page.close()


if __name__ == "__main__":
    main()
