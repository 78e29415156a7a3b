"""A studio and a browser for all tests here; without them tests are skipped, with a word."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCREEN = {"width": 1200, "height": 760}
SECONDS = (
    1200  # for a test, at most: processes that start take a minute where others have the cores
)
NEEDED = ("playwright", "starlette", "uvicorn", "wsproto", "click")


def browser_path():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pytest_collection_modifyitems(items):
    missing = [name for name in NEEDED if find_spec(name) is None]
    why = f"needs {', '.join(missing)}" if missing else None
    if why is None and browser_path() is None:
        why = "needs a browser: install Debian's or Ubuntu's package chromium, or Google Chrome"
    if why is None and "MERCER_BROWSER" not in os.environ:
        why = "in a step of their own, MERCER_BROWSER=1"  # two at once starve each other's fits
    for item in items:
        if "studio/browser" not in item.path.as_posix():
            continue
        item.add_marker(pytest.mark.timeout(SECONDS))
        if why:
            item.add_marker(pytest.mark.skip(reason=f"tests of the studio's page: {why}"))


@contextlib.contextmanager
def studio_address():
    """Run a studio in a process of its own; yields the address of its page.

    What it says goes to a file: a pipe would be open for as long as any of its processes lives, and
    whoever closes a pipe that a thread reads waits for that.
    """
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mercer", "studio", "--no-browser", "--port", str(port)]
    with tempfile.TemporaryFile("w+") as said:
        studio = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=said)
        try:
            while studio.poll() is None and not listens(port):
                time.sleep(0.05)
            said.seek(0)
            found = re.search(r"http://\S+", words := said.read())
            assert found, words
            yield found.group()
        finally:
            end(studio)


def end(process):
    """End a process: it is asked, and if it does not hear, it is made to."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.fixture(scope="session")
def address():
    with studio_address() as found:
        yield found


@contextlib.contextmanager
def opened_browser():
    """Open a browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # no sandbox: containers of continuous integration have no user namespaces
        opened = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def browser():
    with opened_browser() as opened:
        yield opened


@pytest.fixture
def new_reader(browser, address):
    """Make readers, each with a profile of their own; they must have met no error."""
    from studio.browser.reader import Reader

    contexts, readers = [], []

    def make(**options):
        options = {"viewport": SCREEN, "color_scheme": "light"} | options
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        readers.append(Reader(context.new_page(), address))
        return readers[-1]

    yield make
    errors = [error for reader in readers for error in reader.errors]
    for context in contexts:
        context.close()
    assert not errors


@pytest.fixture(scope="session")
def shared_page(browser):
    with contextlib.closing(browser.new_page(viewport=SCREEN, accept_downloads=True)) as page:
        yield page


@pytest.fixture(scope="session")
def shared_reader(shared_page, address):
    from studio.browser.reader import Reader

    return Reader(shared_page, address)


@pytest.fixture
def reader(shared_reader):
    """Return a page with the first example; all tests share it, as a new one takes long."""
    if not shared_reader.is_open:
        shared_reader.open()
    shared_reader.is_open = False  # unless all goes well
    shared_reader.begin_again()
    yield shared_reader
    errors, shared_reader.errors = shared_reader.errors, []
    shared_reader.is_open = not errors  # the next test meets a page without a past
    assert not errors
