"""Check an installed wheel: the backend that is expected runs, and a fit is certified.

Run it in an environment that has the wheel, outside the source tree:
python scripts/check_wheel.py [--backend native|reference]
"""

import argparse
import sys

import numpy as np

import mercer
from mercer.backends import choose_backend
from mercer.kernels import Gaussian


def main() -> int:
    """Return 0 where the wheel does what it should."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="native", choices=["native", "reference"])
    wanted = parser.parse_args().backend
    backend = choose_backend()
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    machine = mercer.SVC(Gaussian(1.0), C=10.0).fit(X, y)
    print(f"mercer {mercer.__version__}, Python {sys.version.split()[0]}, backend {backend.name}")
    print(f"from {mercer.__file__}")
    if backend.name != wanted:
        print(f"the backend should be {wanted}")
        return 1
    if not machine.certificate_.ok:
        print(machine.certificate_)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
