"""Autoencoders: the shape of their networks, and all weights in one vector."""

from __future__ import annotations

from typing import Any

from mercer.files.schema.machine import machine
from mercer.files.schema.record import record
from mercer.machines import Autoencoder, VariationalAutoencoder
from mercer.problems.neural.autoencoding import NetworkParameters
from mercer.problems.neural.network import ACTIVATIONS, Layout

record(Layout, "encoder, decoder: tuple(int)\nactivation: text")
record(NetworkParameters, "parameters: f8[_]", group="answer")


def _whole(more: int, codes: int) -> Any:
    """Return a check that the weights are as many as the layers ask for, and end in rows."""

    def check(built: Any) -> None:
        layout, d = built._layout, len(built.mean_)
        ends = (layout.encoder[0], layout.encoder[-1], layout.decoder[0], layout.decoder[-1])
        q = built.n_components_
        if ends != (d, codes * q, q, d) or min(*layout.encoder, *layout.decoder) < 1:
            raise ValueError(f"layers {layout.encoder} and {layout.decoder} for {d} columns")
        if layout.activation not in ACTIVATIONS:
            raise ValueError(f"an activation {layout.activation!r:.60}")
        count = len(built.solution_.value.parameters)
        if count != layout.size + more:
            raise ValueError(f"{count} weights for layers of {layout.size + more}")

    return check


_COMMON = """
    solution_: Solution
    certificate_: Certificate
    mean_: f8[d]
    unit_: float
    n_components_: int=k
    n_iter_: int
    _layout: Layout
    _seed: int
"""
machine(
    Autoencoder,
    _COMMON + "code_mean_: f8[k]\ncode_covariance_: f8[k,k]\n",
    check=_whole(0, 1),
)
machine(VariationalAutoencoder, _COMMON + "noise_variance_: number\n", check=_whole(1, 2))
