"""Arrays of other libraries (torch, CuPy, JAX): read here, and answered in their kind and place.

Arrays decide where work is done: rows on a card are worked with by the torch backend on that card,
and answers are arrays of the same library, on the same device. Such rows stay there; what is asked
of them is answered there, and they come to the memory of the processor only for what runs there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from mercer.array_types import Array
from mercer.resources import config, get_config
from mercer.rows.device_rows import CardRows
from mercer.rows.devices import at_its_place, place_of

F = TypeVar("F", bound=Callable[..., Any])

METHODS = (
    "fit",
    "fit_predict",
    "fit_transform",
    "partial_fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "inverse_transform",
    "score",
    "score_samples",
    # of some machines
    "bic",
    "correlations",
    "decode",
    "description_length",
    "elbo",
    "impute",
    "kneighbors",
    "latent_mean_and_variance",
    "log_marginal_likelihood",
    "perplexity",
    "posterior",
    "predict_x",
    "preimages",
    "reconstruct",
    "reconstruction_error",
    "risk",
    "sample_y",
    "squared_distance",
    "transform_y",
    "update",
    "zones",
)
_PROCESSOR, _CUDA, _PINNED = 1, 2, 3  # numbers of devices in DLPack
_DENSE = ("", "torch.strided")  # layouts
_ANSWERED = "answers_in_kind"  # marks a method that has been wrapped
_WITHOUT_NUMPY = ("bfloat16", "float8", "float4")  # numbers of torch that float32 holds
_NUMBERS = "biuf"  # kinds of NumPy's types that other libraries have, too


def is_foreign(X: Any) -> bool:
    """Return whether X is an array of another library: it speaks DLPack and is not NumPy's."""
    if isinstance(X, np.ndarray | np.generic):
        return False
    return hasattr(X, "__dlpack__") and hasattr(X, "__dlpack_device__") and hasattr(X, "shape")


def device_name(X: Any) -> str:
    """Return where a foreign array lies: "cpu", "cuda:0" and the like.

    Raises
    ------
    ValueError
        For a device that no backend works on.
    """
    try:
        kind, number = X.__dlpack_device__()
    except Exception as error:  # torch, of devices that DLPack does not know
        raise _unknown(X, str(getattr(X, "device", "unknown"))) from error
    if int(kind) in (_PROCESSOR, _PINNED):
        return "cpu"
    if int(kind) == _CUDA:
        return f"cuda:{int(number)}"
    raise _unknown(X, str(getattr(X, "device", kind)))


def _unknown(X: Any, device: str) -> ValueError:
    return ValueError(
        f"an array of {type(X).__module__} on the device {device!r}: there are 'cpu' and 'cuda'. "
        "Bring it there first, e.g. by X.cpu()"
    )


def on_host(X: Any) -> Array:
    """Return a foreign array as NumPy's, brought to the processor where it is not there."""
    if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
        raise TypeError(
            f"a sparse tensor ({X.layout}) is not read; pass a dense one, X.to_dense(), or rows of "
            "scipy.sparse"
        )
    if hasattr(X, "detach") and hasattr(X, "cpu"):  # torch: gradients do not travel
        X = X.detach().cpu()
        if getattr(X, "is_quantized", False):
            raise TypeError(
                f"a quantized tensor ({X.dtype}) is not read; pass its numbers, X.dequantize()"
            )
        X = X.resolve_conj().resolve_neg()
        if any(name in str(X.dtype) for name in _WITHOUT_NUMPY):
            X = X.float()
        return np.asarray(X.numpy())
    if device_name(X) == "cpu":
        return np.asarray(np.from_dlpack(X))
    if hasattr(X, "get"):  # CuPy
        return np.asarray(X.get())
    import torch  # noqa: PLC0415  a card without torch has no backend here

    return np.asarray(torch.from_dlpack(X).cpu().numpy())


def in_place(X: Any) -> Any:
    """Return rows on a card as they are, where they are rows of numbers; else on the host."""
    if len(X.shape) != 2 or 0 in X.shape or str(getattr(X, "layout", "")) not in _DENSE:
        return on_host(X)
    import torch  # noqa: PLC0415  a card without torch has no backend here

    tensor = X.detach() if torch.is_tensor(X) else torch.from_dlpack(X)
    if not tensor.is_floating_point():
        return on_host(X)  # integers are counts to some machines, and may be beyond float64
    single = tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)
    kind = torch.float32 if single else torch.float64  # as `points.working_dtype` says
    return CardRows(tensor.resolve_neg().to(kind).contiguous())


def in_kind(answer: Any, like: Any) -> Any:
    """Return NumPy's numbers as arrays of the library of `like`, on its device; others as is."""
    if isinstance(answer, tuple):
        parts = [in_kind(part, like) for part in answer]
        return type(answer)(*parts) if hasattr(answer, "_fields") else tuple(parts)
    if type(answer) is not np.ndarray or answer.dtype.kind not in _NUMBERS:
        return answer
    if hasattr(like, "new_tensor"):  # torch
        import torch  # noqa: PLC0415  is there: `like` is one of its tensors

        return torch.from_numpy(np.array(answer)).to(like.device)
    if hasattr(like, "__array_namespace__"):
        return like.__array_namespace__().asarray(answer, device=like.device)
    return answer


def answering_in_kind(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a machine take arrays of other libraries, and answer with them."""
    learns = "fit" in method.__name__

    @functools.wraps(method)
    def answering(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not holds_foreign(args, kwargs):
            with at_its_place(self, learning=learns):
                return method(self, *args, **kwargs)
        return call_in_kind(method, self, args, kwargs)

    return answers_in_kind(answering)


def reading_arrays(function: F) -> F:
    """Make a function take arrays of other libraries; what lies on a card is worked with there.

    Where it answers with an array, that is one of the same library.
    """

    @functools.wraps(function)
    def reading(*args: Any, **kwargs: Any) -> Any:
        if not holds_foreign(args, kwargs):
            return function(*args, **kwargs)
        given = {**dict(zip(inspect.signature(function).parameters, args, strict=False)), **kwargs}
        first, device = _one_device(function.__qualname__, given)
        read = {name: on_host(part) if is_foreign(part) else part for name, part in given.items()}
        with config(**_settings(device)):
            return in_kind(function(**read), first)

    return cast(F, reading)


def _settings(device: str) -> dict[str, str]:
    """Return what `config` is told where arrays lie on a card."""
    return {"backend": "torch", "device": device} if device != "cpu" else {}


def holds_foreign(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether one of the arguments is an array of another library; refuse lists of them.

    Lists on the processor are NumPy's to read, which cannot look at a card.
    """
    values = (*args, *kwargs.values())
    for value in values:
        many = type(value) in (list, tuple) and len(value) and is_foreign(value[0])
        if many and device_name(value[0]) != "cpu":
            raise TypeError(
                f"a {type(value).__name__} of {len(value)} arrays on {device_name(value[0])!r}: "
                "make one array of them first, e.g. by torch.stack(rows)"
            )
    return any(map(is_foreign, values))


def answers_in_kind(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method that looks at its arguments itself: a frame less, which warnings count."""
    setattr(method, _ANSWERED, True)
    return method


def call_in_kind(
    method: Callable[..., Any], machine: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a method with arrays on the host, and bring its answer where the arguments were."""
    names = list(inspect.signature(method).parameters)[1:]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    name = f"{type(machine).__name__}.{method.__name__}"
    first, device = _one_device(name, given)
    place = place_of(machine)
    if place is not None and device not in ("cpu", place.device, f"{place.device}:0"):
        raise ValueError(
            f"{name}: the rows are on {device!r}, but the machine was moved to {place.device!r}; "
            f"bring them together, e.g. by mercer.to_device(machine, {device!r})"
        )
    rows = next(iter(given.values()))
    known = [(rows, in_place(rows))] if device != "cpu" and is_foreign(rows) else []

    def read(value: Any) -> Any:
        if not is_foreign(value):
            return value
        return known[0][1] if known and known[0][0] is value else on_host(value)

    host, named = [read(value) for value in args], {key: read(v) for key, v in kwargs.items()}
    learns = "fit" in method.__name__
    with config(**_settings(device)), at_its_place(machine, learning=learns):
        answer = method(machine, *host, **named)
    return in_kind(answer, first)


def _one_device(name: str, given: dict[str, Any]) -> tuple[Any, str]:
    """Return the first foreign array and its device; refuse others that lie elsewhere."""
    foreign = {key: value for key, value in given.items() if is_foreign(value)}
    places = {key: device_name(value) for key, value in foreign.items()}
    (first, device), *others = places.items()
    for other, place in others:
        if place != device:
            raise ValueError(
                f"{name}: {first} is on {device!r}, but {other} is on {place!r}; bring them "
                f"together, e.g. by {other}.to({device!r})"
            )
    rows = next(iter(given))
    if first != rows and device != "cpu" and isinstance(given[rows], np.ndarray):
        raise ValueError(
            f"{name}: {rows} is an array of NumPy, in the memory of the processor, but {first} is "
            f"on {device!r}; bring them together, e.g. by {first}.cpu()"
        )
    asked = get_config().device
    those = asked.split(",") if asked else []  # of several, each may hold rows
    if those and device != "cpu" and device not in [*those, *(f"{one}:0" for one in those)]:
        raise ValueError(
            f"{name}: {first} is on {device!r}, but config(device={asked!r}) is in force; leave "
            "device=None, and the arrays decide"
        )
    return foreign[first], device


def answer_in_kind(machine: type) -> None:
    """Wrap the methods of a class of machines that take rows."""
    for name in METHODS:
        method = inspect.getattr_static(machine, name, None)
        if inspect.isfunction(method) and not hasattr(method, _ANSWERED):
            setattr(machine, name, answering_in_kind(method))
