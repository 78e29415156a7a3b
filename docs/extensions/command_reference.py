"""Write the reference of the command `mercer` from the command itself, into docs/guide/command.md.

`python docs/extensions/command_reference.py` puts the text between the two marks of the page anew;
`tests/command/test_command_reference.py` fails where it is old; the build of the pages writes it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from mercer.command.application import COMMANDS, SECTIONS, application
from mercer.command.work import EXIT_CODES

_OPTION = re.compile(r"(?<![`\w-])(--?[a-z][a-z-]*)(?![^`]*`[^`]*(?:`[^`]*`[^`]*)*$)")
PAGE = Path(__file__).resolve().parents[1] / "guide" / "command.md"
BEGIN = "<!-- what docs/extensions/command_reference.py makes -->"
END = "<!-- end of what docs/extensions/command_reference.py makes -->"


def reference() -> str:
    """Return the reference of all commands."""
    parts = [_exit_codes()]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}")
        for name in names:
            if name in COMMANDS:
                command = application.get_command(click.Context(application), name)
                parts += _command(f"mercer {name}", command, 3)
    return "\n\n".join(parts)


def _exit_codes() -> str:
    rows = [f"| {code} | {_cell(_with_code(text))} |" for code, text in EXIT_CODES.items()]
    return "\n".join(["## Exit codes", "", "| code | meaning |", "| --- | --- |", *rows])


def _command(path: str, command: Any, level: int) -> list[str]:
    texts = [part.replace("\n", " ") for part in (command.help or "").split("\n\n")]
    first, *more = map(_with_code, texts)
    parts = [f"{'#' * level} {path}", first, *more]
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            parts += _command(f"{path} {name}", inner, level + 1)
        return parts
    context = click.Context(command, info_name=path)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"{path} {usage}", "", *(f"mercer {example}" for example in command.examples)]
    parts.append("```bash\n" + "\n".join(lines) + "\n```")
    options = [option for option in command.params if isinstance(option, click.Option)]
    rows = [_option(option, context) for option in options]
    table = [f"| `{names}` | {text} |" for names, text in filter(None, rows)]
    parts.append("\n".join(["| option | |", "| --- | --- |", *table]))
    return parts


def _option(option: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    record = option.get_help_record(context)
    return None if record is None else (_cell(record[0]), _cell(_with_code(record[1])))


def _with_code(text: str) -> str:
    """Mark options as code: two hyphens would become a dash."""
    return _OPTION.sub(r"`\1`", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(page: str) -> str:
    """Return the page with the reference of now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n\n{END}{after}"


def setup(app: Any) -> dict[str, Any]:
    """Write the page when the documentation is built."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
