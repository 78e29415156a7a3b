"""`mercer kernels`: list, show and try kernels."""

from __future__ import annotations

import inspect
from typing import Any

import click

from mercer.command.tables import DATA, column_of, read_arguments, read_table, reading
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, Work, python, seed

KERNEL = click.argument("kernel", metavar="KERNEL")


@click.group(
    invoke_without_command=True,
    help="List, show and try kernels.\n\nKERNEL is a name (gaussian; its scale is chosen from the "
    "data), a name with parameters (matern(nu=1.5, scale=2)), or a sum or product of "
    "kernels (0.5 * linear + gaussian(2)[age, income]).",
)
@click.pass_context
def kernels(context: click.Context) -> None:
    """List the kernels if no subcommand is given."""
    if context.invoked_subcommand is None:
        context.invoke(list_kernels)


@kernels.command(
    "list",
    cls=Work,
    computes=False,
    examples=["kernels list", "kernels list --json"],
    help="List all kernels with their formulas.",
)
@click.pass_obj
def list_kernels(session: CommandSession, /) -> None:
    """Print names, parameters and formulas."""
    from mercer.kernels.parser import KERNELS  # noqa: PLC0415

    rows = [_row(name, kind) for name, kind in KERNELS.items()]
    text = aligned([(row["call"], row["formula"]) for row in rows], ("kernel", "k(x, y)"))
    session.result({"kernels": rows}, text)


def _row(name: str, kind: type[Any]) -> dict[str, Any]:
    first = inspect.cleandoc(kind.__doc__ or "").split("\n")[0]
    defaults = {
        parameter.name: None if parameter.default is parameter.empty else parameter.default
        for parameter in inspect.signature(kind).parameters.values()
    }
    shown = ", ".join(n if d is None else f"{n}={d!r}" for n, d in defaults.items())
    formula = first.removeprefix("k(x, y) = ").removeprefix("k(s, t) = ")
    return {
        "name": name,
        "call": f"{name}({shown})",
        "formula": formula,
        "parameters": defaults,
    }


@kernels.command(
    "show",
    cls=Work,
    computes=False,
    examples=['kernels show "0.5 * linear + rbf(gamma=0.5)"'],
    help="Show how a kernel expression is parsed.",
)
@KERNEL
@python
@click.pass_obj
def show_kernel(session: CommandSession, /, kernel: str, python: bool) -> None:
    """Print the parsed kernel, its formula and its parameters."""
    if python:
        session.program(["from mercer.kernels import parse", "", f"print(parse({kernel!r}))"])
        return
    found = parsed(kernel)
    parameters = {
        name: value
        for name, value in found.get_params().items()
        if isinstance(value, bool | int | float | str | list | tuple)
    }
    rows = [("kernel", repr(found)), ("formula", _formula(found))]
    rows += [(name, repr(value)) for name, value in parameters.items()]
    rows.append(("positive semidefinite", "yes" if found.psd else "no"))
    values = {"kernel": repr(found), "parameters": parameters, "psd": found.psd}
    session.result(values, aligned(rows))


def _formula(kernel: Any) -> str:
    first = inspect.cleandoc(type(kernel).__doc__ or "").split("\n")[0]
    return first if first.startswith("k(") else "a combination of the kernels above"


def parsed(text: str) -> Any:
    """Parse a kernel expression. Raise a usage error if it is invalid."""
    from mercer.kernels import ParseError, parse  # noqa: PLC0415

    try:
        return parse(text)
    except ParseError as error:
        raise click.UsageError(f"KERNEL: {str(error).splitlines()[0]} (in {text!r})") from error


@kernels.command(
    "try",
    cls=Work,
    examples=[
        "kernels try gaussian people.csv --target income",
        'kernels try "gaussian[age] + linear" people.csv --rows 500',
    ],
    help="Compute the kernel matrix of a sample of rows.\n\nNumbers are scaled to mean 0 and "
    "standard deviation 1. Rows with missing values are dropped. A string kernel uses the first "
    "text column. With --target, also prints the alignment of the kernel and the target (0 to 1).",
)
@KERNEL
@DATA
@click.option("--target", "-t", metavar="COLUMN", help="Column to align the kernel with.")
@click.option(
    "--rows", type=click.IntRange(2, 5000), default=200, show_default=True, help="Sample size."
)
@reading
@seed
@click.pass_obj
def try_kernel(
    session: CommandSession,
    /,
    kernel: str,
    data: str,
    target: str | None,
    rows: int,
    seed: int,
    **options: Any,
) -> None:
    """Print statistics of the kernel matrix."""
    parsed(kernel)
    table = read_table(data, options["drop"], **read_arguments(options))
    if target is not None:
        column_of(table.columns, target, "--target")
    from mercer.command.kernel_trial import trial  # noqa: PLC0415  help needs none of it

    found = trial(kernel, table, target, rows, seed)
    session.result(found, aligned([(name, _shown(value)) for name, value in found.items()]))


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
