"""How a command ends: the exit codes, and errors as one sentence with the remedy."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from mercer.command.session import Session
from mercer.command.streams import forget_broken_pipe
from mercer.command.text import printable

DATA_ERROR = 1
USAGE_ERROR = 2
NOT_CERTIFIED = 3
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EXIT_CODES = {
    0: "done",
    DATA_ERROR: "the data, a model or a file is not right; one sentence on standard error says so",
    USAGE_ERROR: "wrong use: an option, a column or a command that does not exist",
    NOT_CERTIFIED: "not solved or not certified: with --strict, by certify, or when --time-limit "
    "is over before there is any answer",
    INTERRUPTED: "interrupted (Ctrl-C)",
    PIPE_CLOSED: "whoever read the output has gone (as in `| head`)",
    TERMINATED: "ended by SIGTERM",
}


# arguments of Python that errors name as a remedy, and that are options of the same name here
_ARGUMENT = re.compile(r"\b(decimal|delimiter|missing|task|positive|scoring)=('[^']*'|\.\.\.)")


class NotCertifiedError(Exception):
    """The work is done, but what came out is not certified."""


def run(application: click.Group, args: list[str]) -> int:
    """Run a command line and return its exit code."""
    session = Session(line=shlex.join(["mercer", *args]))
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


def _invoke(application: click.Group, args: list[str], session: Session) -> int:
    try:
        with application.make_context("mercer", args, obj=session) as context:
            application.invoke(context)
        _flush()
    except click.exceptions.Exit as found:
        _flush()
        return found.exit_code
    return 0


def _flush() -> None:
    """Meet a closed pipe here, not while Python shuts down."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _refusal(error: Exception, session: Session) -> int:
    """Say in one sentence what went wrong; return the code."""
    from mercer.deadline import TimeLimitError  # noqa: PLC0415  only where something failed

    if session.debug:
        traceback.print_exception(error)
    _say(_ARGUMENT.sub(_as_option, _sentence(error)))
    # the last: a tuning whose time was over; not imported, since only some commands tune
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
        return f"{error.strerror}; nothing more could be written"
    keyed = isinstance(error, KeyError) and error.args and " " in str(error.args[0])
    text = " ".join(str(error.args[0] if keyed else error).split())
    if isinstance(error, MemoryError) and not text:
        return "out of memory; --memory sets a budget that is kept to"
    known = ValueError | OSError | ImportError | MemoryError | NotCertifiedError
    of_column = isinstance(error, TypeError) and text.startswith("column '")  # of a table
    if (
        keyed or of_column or isinstance(error, known)
    ):  # a KeyError with a sentence: a column that is not there
        return text or type(error).__name__
    if type(error).__module__.split(".")[0] == "mercer":  # errors with a sentence of their own
        return text
    return f"{type(error).__name__}: {text} (a fault of Mercer; --debug shows where)"


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
    """Turn SIGTERM into an orderly end: what is half-written is removed on the way out."""
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
def _warnings(session: Session) -> Iterator[None]:
    """Show warnings as plain notes, each once."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        session.note(f"note: {printable(' '.join(str(message).split()))}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("once")
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
        warnings.showwarning = show
        yield
