"""Options from a TOML file: for all commands at the top, for one of them in its table.

::

    seed = 1
    threads = 2

    [fit]
    target = "income"
    time-limit = "10m"
    kind = { zip = "category" }
"""

from __future__ import annotations

from typing import Any

import click

from mercer.command.text import did_you_mean

_NEVER = {"config", "help", "version"}


def take_config(context: click.Context, _: click.Parameter, path: str | None) -> None:
    """Make the values of a file the defaults of this command; refuse what nobody knows."""
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
        raise click.UsageError(f"--config {path!r} is no TOML: {error}") from error


def _path_of(context: click.Context) -> str:
    """Return the name of the command, `kernels try` as `kernels-try`."""
    names: list[str] = []
    at: click.Context | None = context
    while at is not None and at.parent is not None:
        names.insert(0, str(at.info_name))
        at = at.parent
    return "-".join(names)


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by their long names."""
    found = {}
    for option in command.params:
        if isinstance(option, click.Option):
            for name in option.opts:
                if name.startswith("--"):
                    found[name[2:]] = option
    return {name: option for name, option in found.items() if name not in _NEVER}


def _commands(context: click.Context) -> dict[str, click.Command]:
    """Import every command; needed to judge the keys of a file."""
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
        raise click.UsageError(
            f"{path}: there is no command [{name}]; {did_you_mean(name, commands)}"
        )
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
    """Return a value as click takes it; tables become NAME=VALUE."""
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
