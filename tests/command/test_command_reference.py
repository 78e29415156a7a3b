"""The reference of the command is what the command says now."""

import command_reference

from mercer.command.application import COMMANDS


def test_the_page_is_up_to_date():
    page = command_reference.PAGE.read_text(encoding="utf-8")
    assert page == command_reference.written(page), (
        "run python docs/extensions/command_reference.py"
    )


def test_the_page_has_every_command():
    text = command_reference.reference()
    assert all(f"### mercer {name}\n" in text for name in COMMANDS)
    assert "--time-limit SECONDS" in text
