"""Write the golden files of machines that train with torch, where they are not there yet.

From `tests/`, in the environment of `make test-torch`: ``python -m with_torch.make_golden``.
"""

import numpy as np
from files.golden import path_of, told

import mercer

MACHINES = {
    "Autoencoder": lambda: mercer.Autoencoder(2, encoder_sizes=(4,), max_iter=5000),
    "VariationalAutoencoder": lambda: mercer.VariationalAutoencoder(1, encoder_sizes=(), draws=50),
}


def main() -> None:
    rng = np.random.default_rng(0)
    rows = np.round(rng.normal(size=(12, 3)), 6)
    for name, make in MACHINES.items():
        if not path_of(name, "mercer").exists():
            machine = make().fit(rows)
            mercer.save(machine, path_of(name, "mercer"))
            np.savez_compressed(path_of(name, "npz"), rows=rows, **told(machine, rows))


if __name__ == "__main__":
    main()
