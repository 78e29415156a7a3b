"""The form of a command: the options all share, settings in force, examples in the help."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from mercer.command.session import Session
from mercer.command.toml_config import take_config

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Size(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """Bytes, as a number or as text such as 2GB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        from mercer.resources import parse_bytes  # noqa: PLC0415  help needs none of it

        try:
            found = parse_bytes(value)
        except ValueError:
            self.fail(f"{value!r} is no size; write bytes, or text such as 2GB", param, ctx)
        if found <= 0:
            self.fail(f"{value!r} must be positive", param, ctx)
        return found


class Seconds(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """Seconds, as a number or as text such as 10m."""

    name = "seconds"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the seconds."""
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([smh]?)\s*", str(value).lower())
        seconds = float(match[1]) * _SECONDS[match[2]] if match else math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is no time; write seconds, or text such as 10m", param, ctx)
        return seconds


class KernelText(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """A kernel, or a family of kernels, by its text."""

    name = "kernel"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the text, of which it is known that it can be read."""
        from mercer.kernels import resolve  # noqa: PLC0415  help needs none of it

        try:
            if value != "sum over kinds of columns":  # a family that is no kernel
                resolve(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {str(error).splitlines()[0]}", param, ctx)
        return str(value)


class ApproximationText(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """Features in place of a kernel, by their text; "none" is the kernel itself."""

    name = "approximation"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the text, of which it is known that it can be read."""
        from mercer.approximation.text import parse_approximation  # noqa: PLC0415

        text = str(value).strip().lower()
        try:
            if text not in ("auto", "none"):
                parse_approximation(text)
        except ValueError as error:
            self.fail(f"{error}, 'auto' and 'none'", param, ctx)
        return text


class Score(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no type of values
    """The name of a score of scikit-learn."""

    name = "score"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the name, if there is such a score."""
        from mercer.selection.running.task_setup import refuse_unknown_score  # noqa: PLC0415

        try:
            refuse_unknown_score(str(value))
        except ValueError as error:
            self.fail(str(error).partition(" (")[0], param, ctx)
        return str(value)


SIZE, SECONDS, KERNEL, SCORE = Size(), Seconds(), KernelText(), Score()
APPROXIMATION = ApproximationText()


def _flag(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def store(context: click.Context, _: click.Parameter, value: bool) -> None:
        setattr(context.ensure_object(Session), name, value)

    return store


def _setting(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            context.ensure_object(Session).settings[name] = value

    return store


def _shared() -> list[click.Option]:
    """Make the options that every command has; their values go to the session."""
    return [
        click.Option(
            ["--config"],
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=take_config,
            type=click.Path(),
            help="Take options from a TOML file; the command line goes first.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_flag("json"),
            help="Print one JSON object; all else goes to standard error.",
        ),
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_flag("quiet"),
            help="No progress, notes or summary.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            callback=_flag("debug"),
            help="Show where an error happened.",
        ),
    ]


def _resources() -> list[click.Option]:
    """Make the options of commands that compute."""
    return [
        click.Option(
            ["--memory"],
            type=SIZE,
            expose_value=False,
            callback=_setting("memory"),
            help="Bytes to use at most, such as 2GB.",
        ),
        click.Option(
            ["--threads"],
            type=click.IntRange(min=1),
            expose_value=False,
            callback=_setting("threads"),
            help="Threads to use at most.",
        ),
    ]


class Work(click.Command):
    """A command with the shared options, and examples in its help.

    Parameters
    ----------
    examples : sequence of str
        Command lines, without `mercer` before them.
    computes : bool
        Whether it has `--memory` and `--threads`.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        computes: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.params += [*(_resources() if computes else []), *_shared()]

    def invoke(self, ctx: click.Context) -> Any:
        """Run with the settings of the options in force."""
        from mercer.resources import config  # noqa: PLC0415  help needs none of it

        session = ctx.ensure_object(Session)
        with config(progress=not session.quiet, **session.settings):
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}mercer {example}\n")


def time_limit(function: Any) -> Any:
    """Add `--time-limit`."""
    return click.option(
        "--time-limit",
        type=SECONDS,
        default=None,
        help="Seconds for all of it, or 10m, 2h; what was found by then counts.",
    )(function)


def approximation(function: Any) -> Any:
    """Add `--approximation`."""
    return click.option(
        "--approximation",
        type=APPROXIMATION,
        metavar="NAME:COUNT",
        default="auto",
        show_default=True,
        help="Features in place of the kernel: nystrom:1000, random_features:2000, none (exact); "
        "auto takes landmarks where exact work would be refused.",
    )(function)


def seed(function: Any) -> Any:
    """Add `--seed`."""
    return click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=0,
        show_default=True,
        help="Seed of all that chance decides.",
    )(function)


def python(function: Any) -> Any:
    """Add `--python`."""
    return click.option(
        "--python", is_flag=True, help="Print the same as a Python program, and stop."
    )(function)


def strict(function: Any) -> Any:
    """Add `--strict`."""
    return click.option("--strict", is_flag=True, help="Exit with 3 unless solved and certified.")(
        function
    )
