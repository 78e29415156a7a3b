"""The group `mercer`: a table of commands, each imported when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

import mercer.command  # for the package version
from mercer.command.terminal import did_you_mean

# name -> module:function and help line; listing imports no command
COMMANDS: dict[str, tuple[str, str]] = {
    "fit": ("mercer.command.commands.fit:fit", "Fit a certified model to a table."),
    "predict": ("mercer.command.commands.predict:predict", "Predict new rows with a model."),
    "evaluate": (
        "mercer.command.commands.evaluate:evaluate",
        "Evaluate a model on labeled rows.",
    ),
    "certify": (
        "mercer.command.commands.certify:certify",
        "Verify a saved model against its training data.",
    ),
    "report": ("mercer.command.commands.report:report", "Write the HTML report of a model."),
    "serve": (
        "mercer.command.commands.serve:serve",
        "Serve predictions over HTTP on this computer until Ctrl-C.",
    ),
    "studio": (
        "mercer.command.commands.studio:studio",
        "Open an interactive page to explore estimators.",
    ),
    "check": ("mercer.command.commands.check:check", "Find problems in a table."),
    "convert": (
        "mercer.command.commands.convert:convert",
        "Convert data and models to or from LIBSVM, ONNX, CSV.",
    ),
    "cluster": ("mercer.command.commands.cluster:cluster", "Group similar rows."),
    "project": ("mercer.command.commands.project:project", "Project rows to few dimensions."),
    "topics": ("mercer.command.commands.topics:topics", "Find topics in texts."),
    "stream": (
        "mercer.command.commands.stream:stream",
        "Learn online from labeled lines and corrections.",
    ),
    "kernels": ("mercer.command.commands.kernels:kernels", "List, show and try kernels."),
}

SECTIONS = {
    "Models": ("fit", "predict", "evaluate", "certify", "report", "serve"),
    "Unsupervised": ("cluster", "project", "topics"),
    "More": ("studio", "check", "convert", "stream", "kernels"),
}


COMPLETION = "_MERCER_COMPLETE"  # the variable that click's scripts set


class Application(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(import_module(module), function)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. For an unknown name, suggest the nearest one."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS:
            raise click.UsageError(f"unknown command {name!r}; {did_you_mean(name, COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of commands without importing them."""
        for title, names in SECTIONS.items():
            rows = [(name, COMMANDS[name][1]) for name in names if name in COMMANDS]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes and shell completion."""
        from mercer.command.work import EXIT_CODES  # noqa: PLC0415  for help alone

        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in EXIT_CODES.items()])
        with formatter.section("Shell completion"):
            formatter.write_text('eval "$(_MERCER_COMPLETE=bash_source mercer)", or zsh, fish')

    def main(  # type: ignore[override]  # it always exits
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and exit with a code of `EXIT_CODES`. Only completion uses click's own `main`."""
        from mercer.command.work import run  # noqa: PLC0415  as above

        if COMPLETION in os.environ:
            super().main(args, "mercer", complete_var=COMPLETION, **extra)
        sys.exit(run(self, list(sys.argv[1:] if args is None else args)))


@click.group(
    "mercer",
    cls=Application,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Fit certified kernel models to tables from the shell. "
    "`mercer COMMAND --help` shows examples.",
)
@click.version_option(mercer.__version__, prog_name="mercer", message="%(prog)s %(version)s")
@click.pass_context
def application(context: click.Context) -> None:
    """Show the help if no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        context.exit(2)
