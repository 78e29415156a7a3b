"""Parameters of kernels by name, through any depth: what grid searches reach.

A kernel's parameters are its dataclass fields. Parts of sums and products are called k1, k2, ...;
a parameter of a part is `k1__scale`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from mercer.kernels.base import Kernel

K = TypeVar("K", bound="Kernel")


def parts(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the kernels that this kernel is directly made of."""
    return tuple(v for v in own(kernel).values() if _is_kernel(v))


def own(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel's own parameters; a tuple of kernels is spread as k1, k2, ..."""
    found: dict[str, Any] = {}
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        found.update(_spread(value) if _is_parts(value) else {field.name: value})
    return found


def deep(kernel: Kernel) -> dict[str, Any]:
    """Return the kernel's own parameters and, as `name__field`, those of its parts."""
    found = own(kernel)
    for name, value in tuple(found.items()):
        if _is_kernel(value):
            found.update({f"{name}__{inner}": v for inner, v in deep(value).items()})
    return found


def replaced(kernel: K, params: dict[str, Any]) -> K:
    """Return a new kernel with these parameters, names as in `deep`."""
    values = own(kernel)
    nested: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        head, _, tail = name.partition("__")
        if head not in values:
            raise _unknown(kernel, name)
        if tail:
            nested.setdefault(head, {})[tail] = value
        else:
            values[head] = value
    for head, inner in nested.items():
        if not _is_kernel(values[head]):
            raise _unknown(kernel, f"{head}__{next(iter(inner))}")
        values[head] = replaced(values[head], inner)
    return _rebuilt(kernel, values) if params else kernel


def _rebuilt(kernel: K, values: dict[str, Any]) -> K:
    arguments: dict[str, Any] = {}
    for field in fields(kernel):
        old = getattr(kernel, field.name)
        is_parts = _is_parts(old)
        arguments[field.name] = (
            tuple(values[name] for name in _spread(old)) if is_parts else values[field.name]
        )
    return type(kernel)(**arguments)


def _spread(kernels: tuple[Kernel, ...]) -> dict[str, Kernel]:
    return {f"k{i}": kernel for i, kernel in enumerate(kernels, start=1)}


def _is_parts(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(_is_kernel(v) for v in value)


def _is_kernel(value: Any) -> bool:
    from mercer.kernels.base import Kernel  # noqa: PLC0415  base imports this file

    return isinstance(value, Kernel)


def _unknown(kernel: Kernel, name: str) -> ValueError:
    valid, kind = ", ".join(deep(kernel)) or "none", type(kernel).__name__
    if name in kernel.alternatives:
        return ValueError(
            f"{kind}: {name!r} is another way to write a new kernel, {kind}({name}=...), no "
            f"parameter of this one; change one of: {valid}"
        )
    return ValueError(f"{kind} has no parameter {name!r}; it has: {valid}")
