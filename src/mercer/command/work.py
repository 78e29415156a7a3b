"""Shared options, configuration file, exit codes and sessions of the commands."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Any

import click

from mercer.command.terminal import did_you_mean, forget_broken_pipe, printable, standard_output

# --- session -------------------------------------------------------------------------------------
#
# Values of the shared options, and output of results and notes.

_NATURAL = ("numpy",)  # modules whose scalars and arrays have tolist


@dataclass
class CommandSession:
    """One run of the command.

    Attributes
    ----------
    json : bool
        Results are one JSON object on standard output.
    quiet : bool
        No notes, no progress, no summary.
    debug : bool
        Errors show the traceback.
    settings : dict
        Settings of `mercer.config`: memory, threads.
    line : str
        The command line, quoted for a shell.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    line: str = "mercer"

    def note(self, text: str) -> None:
        """Print a note on standard error, unless `quiet`."""
        if self.quiet:
            return
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:  # the pipe is closed; continue without notes
            self.quiet = True

    def result(self, values: dict[str, Any], text: str) -> None:
        """Print the result as one JSON object or as text."""
        if self.json:
            write_out(json.dumps(plain(values), allow_nan=False).encode("ascii") + b"\n")
        elif not self.quiet:
            write_out(text.rstrip("\n").encode("utf-8", "backslashreplace") + b"\n")

    def program(self, lines: list[str]) -> None:
        """Print an equivalent Python program for `--python`."""
        text = "\n".join(lines).rstrip("\n") + "\n"
        if self.json:
            self.result({"python": text}, "")
        else:
            write_out(text.encode("utf-8", "backslashreplace"))


def write_out(data: bytes) -> None:
    """Write bytes to standard output, if it is open."""
    out = standard_output()
    if out is not None:
        out.write(data)
        out.flush()


def plain(value: Any) -> Any:
    """Convert a value to JSON types. Numbers that are not finite become null.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.float64("nan"), "b": np.arange(2), 3: None})
    {'a': None, 'b': [0, 1], '3': None}
    """
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(plain(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if isinstance(value, PurePath):
        return os.fspath(value)
    if isinstance(value, Enum):
        return plain(value.value)
    if type(value).__module__.split(".")[0] in _NATURAL and hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


# --- toml config ---------------------------------------------------------------------------------
#
# Options from a TOML file: top-level keys for all commands, tables for single commands.
#
# ::
#
#     seed = 1
#     threads = 2
#
#     [fit]
#     target = "income"
#     time-limit = "10m"
#     kind = { zip = "category" }

_NEVER = {"config", "help", "version"}


def take_config(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Use the values of a file as defaults of this command. Raise for unknown keys."""
    if path is None:
        return
    content = _read(path)
    for name, value in content.items():
        if isinstance(value, dict):
            _check_table(context, path, name, value)
    shared = {key: value for key, value in content.items() if not isinstance(value, dict)}
    _check_shared(context, path, shared)
    options = _options(context.command)
    table = content.get(_path_of(context), {})
    mine = {k: v for k, v in shared.items() if k.replace("_", "-") in options} | table
    values = {}
    for key, value in mine.items():
        option = options[key.replace("_", "-")]
        values[str(option.name)] = _value(option, value, f"{path}: {key}")
    context.default_map = values


def _read(path: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  only where a file is named

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise click.UsageError(f"--config {path!r}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.UsageError(f"--config {path!r} is not valid TOML: {error}") from error


def _path_of(context: click.Context) -> str:
    """Return the table name of a command, such as `kernels-try` for `kernels try`."""
    names: list[str] = []
    at: click.Context | None = context
    while at is not None and at.parent is not None:
        names.insert(0, str(at.info_name))
        at = at.parent
    return "-".join(names)


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by long name."""
    found = {}
    for option in command.params:
        if isinstance(option, click.Option):
            for name in option.opts:
                if name.startswith("--"):
                    found[name[2:]] = option
    return {name: option for name, option in found.items() if name not in _NEVER}


def _commands(context: click.Context) -> dict[str, click.Command]:
    """Import every command to check the keys of a file."""
    root = context.find_root()
    found: dict[str, click.Command] = {}
    assert isinstance(root.command, click.Group)
    for name in root.command.list_commands(root):
        command = root.command.get_command(root, name)
        assert command is not None
        found[name] = command
        if isinstance(command, click.Group):
            found |= {f"{name}-{inner}": one for inner, one in command.commands.items()}
    return found


def _check_table(context: click.Context, path: str, name: str, table: dict[str, Any]) -> None:
    commands = _commands(context)
    if name not in commands:
        raise click.UsageError(f"{path}: unknown command [{name}]; {did_you_mean(name, commands)}")
    options = _options(commands[name])
    for key in table:
        if key.replace("_", "-") not in options:
            raise click.UsageError(
                f"{path}: [{name}] has no option {key!r}; {did_you_mean(key, options)}"
            )


def _check_shared(context: click.Context, path: str, shared: dict[str, Any]) -> None:
    if not shared:
        return
    known = {option for command in _commands(context).values() for option in _options(command)}
    for key in shared:
        if key.replace("_", "-") not in known:
            raise click.UsageError(
                f"{path}: no command has an option {key!r}; {did_you_mean(key, sorted(known))}"
            )


def _value(option: click.Option, value: Any, place: str) -> Any:
    """Convert a TOML value for click. Tables become NAME=VALUE."""
    entries = value.values() if isinstance(value, dict) else value
    for one in entries if option.multiple and isinstance(value, dict | list) else [value]:
        if not isinstance(one, str | int | float):
            raise click.UsageError(f"{place} takes one value")
    if option.multiple:
        if isinstance(value, dict):
            return [f"{name}={entry}" for name, entry in value.items()]
        return value if isinstance(value, list) else [value]
    if option.is_flag != isinstance(value, bool):
        raise click.UsageError(f"{place} takes {'true or false' if option.is_flag else 'a value'}")
    return value


# --- exit codes and errors -----------------------------------------------------------------------

DATA_ERROR = 1
USAGE_ERROR = 2
NOT_CERTIFIED = 3
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EXIT_CODES = {
    0: "done",
    DATA_ERROR: "invalid data, model or file; standard error describes the problem",
    USAGE_ERROR: "usage error: unknown command, option or column",
    NOT_CERTIFIED: "not solved or not certified: with --strict, by certify, or if --time-limit "
    "expires before the first result",
    INTERRUPTED: "interrupted (Ctrl-C)",
    PIPE_CLOSED: "output pipe closed (as in `| head`)",
    TERMINATED: "terminated by SIGTERM",
}


# Python arguments in error messages that are also command-line options
_ARGUMENT = re.compile(r"\b(decimal|delimiter|missing|task|positive|scoring)=('[^']*'|\.\.\.)")


class NotCertifiedError(Exception):
    """The command succeeded, but the result is not certified."""


def run(application: click.Group, args: list[str]) -> int:
    """Run a command line and return its exit code."""
    session = CommandSession(line=shlex.join(["mercer", *args]))
    with _signals(), _warnings(session):
        try:
            return _invoke(application, args, session)
        except (KeyboardInterrupt, click.Abort, EOFError):
            _say("interrupted")
            return INTERRUPTED
        except BrokenPipeError:
            forget_broken_pipe()
            return PIPE_CLOSED
        except click.UsageError as error:
            _usage(error)
            return USAGE_ERROR
        except Exception as error:
            return _refusal(error, session)


def _invoke(application: click.Group, args: list[str], session: CommandSession) -> int:
    try:
        with application.make_context("mercer", args, obj=session) as context:
            application.invoke(context)
        _flush()
    except click.exceptions.Exit as found:
        _flush()
        return found.exit_code
    return 0


def _flush() -> None:
    """Flush standard output here, so that a closed pipe does not fail at exit."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _refusal(error: Exception, session: CommandSession) -> int:
    """Print an error as one sentence. Return the exit code."""
    from mercer.deadline import TimeLimitError  # noqa: PLC0415  only where something failed

    if session.debug:
        traceback.print_exception(error)
    _say(_ARGUMENT.sub(_as_option, _sentence(error)))
    # compared by name: only commands that tune import it
    late = isinstance(error, NotCertifiedError | TimeLimitError)
    late = late or type(error).__name__ == "NothingJudgedError"
    return NOT_CERTIFIED if late else DATA_ERROR


def _as_option(found: re.Match[str]) -> str:
    value = "..." if found[2] == "..." else shlex.quote(found[2][1:-1])
    return f"--{found[1]} {value}"


def _sentence(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        names = [os.fsdecode(n) for n in (error.filename, error.filename2) if n is not None]
        return f"{' -> '.join(names)}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}; cannot write more output"
    keyed = isinstance(error, KeyError) and error.args and " " in str(error.args[0])
    text = " ".join(str(error.args[0] if keyed else error).split())
    if isinstance(error, MemoryError) and not text:
        return "out of memory; set a memory budget with --memory"
    known = ValueError | OSError | ImportError | MemoryError | NotCertifiedError
    of_column = isinstance(error, TypeError) and text.startswith("column '")  # an error of a table
    if (
        keyed or of_column or isinstance(error, known)
    ):  # a KeyError with a sentence: a missing column
        return text or type(error).__name__
    if type(error).__module__.split(".")[0] == "mercer":  # other errors of Mercer
        return text
    return f"{type(error).__name__}: {text} (a bug in Mercer; --debug shows the traceback)"


def _usage(error: click.UsageError) -> None:
    _say(error.format_message())
    if error.ctx is not None:
        print(f"Try '{error.ctx.command_path} --help'.", file=sys.stderr)


def _say(text: str) -> None:
    try:
        print(f"mercer: {printable(text)}", file=sys.stderr, flush=True)
    except OSError:
        forget_broken_pipe()


@contextmanager
def _signals() -> Iterator[None]:
    """Convert SIGTERM to `SystemExit`, so that partially written files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: Any) -> None:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings(session: CommandSession) -> Iterator[None]:
    """Print each warning once, as a note."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        session.note(f"note: {printable(' '.join(str(message).split()))}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once")
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.showwarning = show
        yield


# --- work ----------------------------------------------------------------------------------------
#
# The command class: shared options, resource settings, examples in the help.

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Size(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """Bytes, as a number or as text such as 2GB."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return the number of bytes."""
        from mercer.resources import parse_bytes  # noqa: PLC0415  help needs none of it

        try:
            found = parse_bytes(value)
        except ValueError:
            self.fail(f"{value!r} is not a size; use bytes or text such as 2GB", param, ctx)
        if found <= 0:
            self.fail(f"{value!r} must be positive", param, ctx)
        return found


class Seconds(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """Seconds, as a number or as text such as 10m."""

    name = "seconds"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the seconds."""
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([smh]?)\s*", str(value).lower())
        seconds = float(match[1]) * _SECONDS[match[2]] if match else math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is not a duration; use seconds or text such as 10m", param, ctx)
        return seconds


class KernelText(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A kernel expression, or the name of a family of kernels."""

    name = "kernel"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the text after checking that it can be parsed."""
        from mercer.kernels import resolve  # noqa: PLC0415  help needs none of it

        try:
            if value != "sum over kinds of columns":  # a family, not a kernel
                resolve(str(value))
        except ValueError as error:
            self.fail(f"{value!r}: {str(error).splitlines()[0]}", param, ctx)
        return str(value)


class ApproximationText(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A kernel approximation, such as nystrom:1000; "none" is the exact kernel."""

    name = "approximation"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the text after checking that it can be parsed."""
        from mercer.approximation.text import parse_approximation  # noqa: PLC0415

        text = str(value).strip().lower()
        try:
            if text not in ("auto", "none"):
                parse_approximation(text)
        except ValueError as error:
            self.fail(f"{error}, 'auto' and 'none'", param, ctx)
        return text


class Score(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """The name of a scikit-learn score."""

    name = "score"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Return the name after checking that the score exists."""
        from mercer.selection.task import refuse_unknown_score  # noqa: PLC0415

        try:
            refuse_unknown_score(str(value))
        except ValueError as error:
            self.fail(str(error).partition(" (")[0], param, ctx)
        return str(value)


SIZE, SECONDS, KERNEL, SCORE = Size(), Seconds(), KernelText(), Score()
APPROXIMATION = ApproximationText()


def _flag(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def store(context: click.Context, _: click.Parameter, value: bool) -> None:
        setattr(context.ensure_object(CommandSession), name, value)

    return store


def _setting(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def store(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            context.ensure_object(CommandSession).settings[name] = value

    return store


def _shared() -> list[click.Option]:
    """Make the options of all commands; their values are stored in the session."""
    return [
        click.Option(
            ["--config"],
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=take_config,
            type=click.Path(),
            help="Read options from a TOML file; the command line takes precedence.",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_flag("json"),
            help="Print one JSON object; notes go to standard error.",
        ),
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            expose_value=False,
            callback=_flag("quiet"),
            help="Hide progress, notes and summary.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            callback=_flag("debug"),
            help="Show the traceback of an error.",
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
            help="Memory budget, such as 2GB.",
        ),
        click.Option(
            ["--threads"],
            type=click.IntRange(min=1),
            expose_value=False,
            callback=_setting("threads"),
            help="Maximum number of threads.",
        ),
    ]


class Work(click.Command):
    """A command with the shared options and examples in its help.

    Parameters
    ----------
    examples : sequence of str
        Example command lines, without `mercer`.
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
        """Run with the resource settings of the options."""
        from mercer.resources import config  # noqa: PLC0415  help needs none of it

        session = ctx.ensure_object(CommandSession)
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
        help="Total time limit, such as 90 (seconds), 10m or 2h; keeps the best result.",
    )(function)


def approximation(function: Any) -> Any:
    """Add `--approximation`."""
    return click.option(
        "--approximation",
        type=APPROXIMATION,
        metavar="NAME:COUNT",
        default="auto",
        show_default=True,
        help="Approximation: auto, none, or such as nystrom:1000 or random_features:2000.",
    )(function)


def seed(function: Any) -> Any:
    """Add `--seed`."""
    return click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=0,
        show_default=True,
        help="Random seed.",
    )(function)


def python(function: Any) -> Any:
    """Add `--python`."""
    return click.option(
        "--python", is_flag=True, help="Print an equivalent Python program and exit."
    )(function)


def strict(function: Any) -> Any:
    """Add `--strict`."""
    return click.option(
        "--strict", is_flag=True, help="Exit with code 3 unless solved and certified."
    )(function)
