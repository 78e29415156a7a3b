"""What the tests of the command have in common: a shell in this process, and one outside."""

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

from mercer.command.application import application


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def mercer(tmp_path, monkeypatch):
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args, input=None, code=0):
        done = CliRunner().invoke(application, [str(arg) for arg in args], input=input)
        assert "Traceback" not in done.stderr
        assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
        return Ended(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def shell(tmp_path):
    """Run a line of a real shell in an empty folder; `mercer` there is this one."""

    def run(line, code=0, **settings):
        line = f'mercer() {{ "{sys.executable}" -W ignore -m mercer "$@"; }}; {line}'
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            cwd=tmp_path,
            **settings,
        )
        assert "Traceback" not in done.stderr
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
