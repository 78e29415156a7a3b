"""The frame of the command: help, exit codes, errors, closed streams, options from files."""

import json
import os
import signal
import subprocess
import sys
import time

import click
import pytest

import mercer as library
from mercer.command import application as frame
from mercer.command import work as ending
from mercer.command.application import COMMANDS, SECTIONS, application
from mercer.command.work import CommandSession, Work, plain
from mercer.selection.tuning import NothingJudgedError

# modules that take longer to import than the help may
HEAVY = ("numpy", "scipy", "sklearn", "rich", "pandas", "pyarrow", "jinja2", "matplotlib")


def every_command():
    context = click.Context(application)
    for name in COMMANDS:
        command = application.get_command(context, name)
        yield name, command
        if isinstance(command, click.Group):
            for inner in command.commands.values():
                yield f"{name} {inner.name}", inner


def test_version(mercer):
    assert mercer("--version").out == f"mercer {library.__version__}\n"


def test_help_names_every_command_and_exit_code(mercer):
    text = mercer("--help").out
    for name, (_, line) in COMMANDS.items():
        assert name in text
        assert line in text
    for code in ending.EXIT_CODES:
        assert f"\n  {code} " in text


def test_without_arguments_the_help_is_shown(mercer):
    assert "Usage: mercer" in mercer(code=2).err


def test_sections_have_every_command():
    listed = [name for names in SECTIONS.values() for name in names]
    assert set(COMMANDS) <= set(listed)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_in_its_help_what_the_list_says(mercer, name):
    command = application.get_command(click.Context(application), name)
    assert command.help.split("\n")[0] == COMMANDS[name][1]
    assert COMMANDS[name][1] in mercer(name, "--help").out.replace("\n  ", " ")


def test_every_command_has_examples_and_the_shared_options():
    for name, command in every_command():
        if isinstance(command, click.Group):
            continue
        assert isinstance(command, Work), name
        assert command.examples, name
        assert all(example.startswith(name) for example in command.examples), name
        options = {text for option in command.params for text in option.opts}
        assert {"--json", "--quiet", "--debug", "--config"} <= options, name


def test_help_imports_nothing_that_takes_time():
    code = (
        "import sys\n"
        "from mercer.command import main\n"
        f"for name in {list(COMMANDS)!r}:\n"
        "    assert main([name, '--help']) == 0\n"
        "assert main(['--help']) == main(['--version']) == 0\n"
        f"print([n for n in {HEAVY!r} if n in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.strip() == "[]"


def test_without_click_the_remedy_is_named():
    code = (
        "import sys\n"
        "sys.modules['click'] = None\n"
        "from mercer.command import main\n"
        "sys.exit(main(['--version']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert 'pip install "mercer[cli]"' in done.stderr


# --- errors ----------------------------------------------------------------------------------


def test_misspelt_commands_and_options_get_a_hint(mercer):
    assert "did you mean 'predict'?" in mercer("predct", code=2).err
    err = mercer("kernels", "list", "--jsn", code=2).err
    assert "--json" in err
    assert "Try 'mercer kernels list --help'." in err


@pytest.fixture
def failing(monkeypatch):
    """Return a function that makes `mercer kernels list` raise something."""

    def install(error):
        def fail(*_args, **_settings):
            raise error

        monkeypatch.setattr(CommandSession, "result", fail)

    return install


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("line 3,\n column 'a': 'x' is no number"), 1, "line 3, column 'a'"),
        (FileNotFoundError(2, "No such file or directory", "a\nb.csv"), 1, r"a\nb.csv: No such"),
        (library.MemoryBudgetError("needs 9 GB; use less"), 1, "needs 9 GB; use less"),
        (library.TimeLimitError("no answer in 1 s"), 3, "no answer in 1 s"),
        (NothingJudgedError("no point in 1 s"), 3, "no point in 1 s"),
        (KeyError("the table has no column 'a'"), 1, "mercer: the table has no column 'a'"),
        (OSError(28, "No space left on device"), 1, "No space left on device; cannot write more"),
        (ending.NotCertifiedError("not certified: gap 0.1"), 3, "not certified: gap 0.1"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ImportError('pip install "mercer[onnx]"'), 1, 'pip install "mercer[onnx]"'),
        (MemoryError(), 1, "--memory"),
        (TypeError("boom"), 1, "TypeError: boom (a bug in Mercer; --debug shows the traceback)"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_errors_are_one_sentence_and_a_code(mercer, failing, error, code, said):
    failing(error)
    ended = mercer("kernels", "list", code=code)
    assert said in ended.err
    assert ended.err.count("\n") <= 1
    assert ended.out == ""


def test_debug_shows_where(shell):
    code = "from mercer.command.work import CommandSession as Session; Session.result = None; "
    code += "from mercer.command import main; main(['kernels', 'list', '--debug'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" in done.stderr


def test_sigterm_ends_with_143():
    code = (
        "import os, signal, time\n"
        "from mercer.command.work import CommandSession as Session\n"
        "from mercer.command import main\n"
        "Session.result = lambda *_: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(9))\n"
        "raise SystemExit(main(['kernels', 'list']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 143


# --- streams ---------------------------------------------------------------------------------


def test_closed_pipes_and_streams(shell):
    # | head -c 1: the reader goes away; >&- and <&-: the shell closed them
    ended = shell("mercer kernels list | true; echo ${PIPESTATUS[0]}")
    assert ended.out.strip() in {"141", "0"}  # 0: all of it fitted into the pipe
    assert ended.err == ""
    assert shell("mercer kernels list >&-").err == ""
    assert shell("mercer kernels list <&- 2>&-").out.startswith("kernel")
    assert shell("mercer fitt <&- >&- 2>&-", code=2).out == ""


def test_a_full_disk_is_named(shell):
    assert "No space left" in shell("mercer kernels list > /dev/full", code=1).err


def test_a_file_never_gets_the_number_of_a_closed_stream(shell):
    line = 'python -c "from mercer.command.terminal import repair_streams as r; r(); '
    line = line.replace("python", f'"{sys.executable}"')
    assert shell(line + "f = open('x', 'w'); print(f.fileno(), file=f)\" <&- >&- 2>&-").code == 0
    assert int(shell("cat x").out) > 2


def test_json_is_one_object(mercer):
    found = mercer("kernels", "list", "--json").json
    assert {kernel["name"] for kernel in found["kernels"]} >= {"gaussian", "linear"}


def test_plain_values():
    import numpy as np

    found = plain({"a": np.float32(0.5), "b": (np.inf, np.nan, 1e300), "c": np.array(["x"])})
    assert found == {"a": 0.5, "b": [None, None, 1e300], "c": ["x"]}
    assert plain(library.Status.SOLVED) == library.Status.SOLVED.value
    json.dumps(plain({"x": object(), "y": {1: {2, 3}}}), allow_nan=False)


def test_quiet_says_nothing(mercer):
    ended = mercer("kernels", "list", "--quiet")
    assert (ended.out, ended.err) == ("", "")


def test_names_do_not_drive_the_terminal(mercer):
    err = mercer("kernels", "show", "a\x1b[31m\u202eb", code=2).err
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_completion(shell):
    line = "_MERCER_COMPLETE=bash_complete COMP_WORDS='mercer pre' COMP_CWORD=1 mercer"
    assert "predict" in shell(line).out
    assert "complete" in shell("_MERCER_COMPLETE=bash_source mercer").out


# --- options from a file ---------------------------------------------------------------------


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "options.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_options_from_a_file(mercer, toml):
    assert mercer("kernels", "list", "--config", toml("json = true")).json["kernels"]
    assert mercer("kernels", "list", "--config", toml("[kernels-list]\njson = true")).json
    # what another command has is left aside here, and the command line goes first
    both = toml("seed = 3\nquiet = true\n[fit]\ntarget = 'y'\n")
    assert mercer("kernels", "list", "--config", both).out == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sed = 3", "did you mean 'seed'?"),
        ("[fitt]\nseed = 3", "did you mean 'fit'?"),
        ("[fit]\ntarge = 'y'", "did you mean 'target'?"),
        ("[fit\n", "is not valid TOML"),
        ("quiet = 'yes'", "true or false"),
        ("quiet = [true]", "takes one value"),
        ("quiet = 1979-05-27", "takes one value"),
        ("a = " + "[" * 5000, "is not valid TOML"),
        ("config = 'other.toml'", "no command has an option 'config'"),
    ],
)
def test_wrong_files_are_refused(mercer, toml, text, said):
    assert said in mercer("kernels", "list", "--config", toml(text), code=2).err


def test_a_missing_file_is_refused(mercer):
    assert "No such file" in mercer("kernels", "list", "--config", "none.toml", code=2).err


# --- python ----------------------------------------------------------------------------------


def test_python_is_a_program_that_runs(mercer, capsys):
    program = mercer("kernels", "show", "rbf(gamma=0.5)", "--python").out
    exec(compile(program, "program", "exec"), {})
    assert capsys.readouterr().out == "Gaussian(scale=1.0)\n"


def test_python_m_mercer(shell):
    assert shell("mercer --version").out.startswith("mercer ")


def test_serve_can_be_added_later(monkeypatch, mercer):
    monkeypatch.setitem(
        frame.COMMANDS, "serve", ("mercer.command.commands.kernels:list_kernels", "Serve.")
    )
    assert "serve" in mercer("--help").out
    assert mercer("serve").out.startswith("kernel")


def test_interrupt_of_a_real_process(tmp_path):
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # not so in background jobs\n"
        "from mercer.command.work import CommandSession as Session\n"
        "from mercer.command import main\n"
        "Session.result = lambda *_: (print('ready', flush=True), time.sleep(30))\n"
        "sys.exit(main(['kernels', 'list']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "mercer: interrupted\n"
