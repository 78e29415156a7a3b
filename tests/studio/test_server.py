"""The server answers its own page, two of them apart, breaks off, and refuses everybody else."""

import base64
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("wsproto", reason="the socket of a server that runs needs wsproto")

from studio.live import TOKEN, Page, RefusedError, free_port, http, studio

from mercer.studio import StudioLimits, session, show
from mercer.studio.presets import PRESETS
from mercer.studio.server import _read, page_files

SMALL = {"bounds": [-1.5, 1.5, -1.5, 1.5], "nx": 10, "ny": 10}
CSV = b"a,b,kind\n" + b"".join(
    f"{x:.3f},{y:.3f},{'up' if x > y else 'down'}\n".encode()
    for x, y in np.random.default_rng(0).normal(size=(40, 2))
)
LIMITS = StudioLimits(upload=100_000, spare=False)
JSON = {"content_type": "application/json", "authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def port():
    with studio(limits=LIMITS, table=("towns.csv", CSV)) as found:
        yield found


@pytest.fixture(scope="module")
def page(port):
    found = Page(port)
    yield found
    found.close()


def moons(n=30, **changes):
    return {**PRESETS["moons"].scene(n), "view": SMALL, **changes}


def slow():
    """Return a scene whose fit takes far longer than a test."""
    scene = {**PRESETS["overlap"].scene(2000), "view": SMALL, "machine": "LogisticRegression"}
    return {**scene, "kernel": "gaussian(0.05)", "parameters": {"penalty": 1e-6}}


def upload(content, name="mine.csv"):
    text = base64.b64encode(content).decode()
    return json.dumps({"name": name, "base64": text}).encode()


# --- who is answered -----------------------------------------------------------------------------


def test_a_page_is_greeted_and_answered(page):
    assert page.hello["kind"] == "hello" and page.hello["table"]["name"] == "towns.csv"
    names = {one["name"] for one in page.hello["machines"]}
    assert {"SVC", "SVR", "OneClassSVM", "KMeans", "GaussianMixture", "PCA", "CCA"} <= names
    assert len(page.hello["tours"]) >= 20
    found, _ = page.ask("fit", scene=moons())
    assert found["kind"] == "answer" and found["status"]["ok"] and found["seconds"] > 0


def test_the_table_of_the_command_and_one_that_is_dropped(page, port):
    found, _ = page.ask("fit", scene=page.hello["table"]["scene"])
    assert found["kind"] == "answer" and found["layers"]["names"] == ["down", "up"]
    status, _, body = http(port, "POST", "/table", upload(CSV), **JSON)
    dropped = json.loads(body)
    assert status == 200 and dropped["rows"] == 40 and dropped["target"] == "kind"
    found, _ = page.ask("fit", scene=dropped["scene"])
    assert found["kind"] == "answer" and found["layers"]["rows"]["shape"] == [40, 2]
    gone = {**dropped["scene"], "table": {**dropped["scene"]["table"], "id": "t99"}}
    found, _ = page.ask("fit", scene=gone)
    assert found["kind"] == "refused" and "open it again" in found["words"]


def test_refusals_come_in_words(page):
    found, _ = page.ask("fit", scene=moons(parameters={"C": -1}))
    assert found["kind"] == "refused" and "C=-1" in found["words"]
    found, _ = page.ask("kernel", scene=moons(kernel="gausian(2)"))
    assert found["kind"] == "refused" and found["position"] == 0 and "gaussian" in found["words"]
    found, _ = page.ask("nothing")
    assert found["kind"] == "refused" and "nothing" in found["words"]
    assert page.ask("fit")[0]["kind"] == "refused"


def test_the_newest_request_wins(page):
    first = page.send("fit", scene=slow(), seconds=60)
    time.sleep(0.3)
    last = [page.send("fit", scene=moons(parameters={"C": 1.0 + k})) for k in range(4)]
    ends = {}
    while len(ends) < 5:
        frame = page.next()
        if frame["kind"] != "progress":
            ends[frame["id"]] = frame
    assert ends[first]["kind"] == "cancelled" and ends[first]["why"] == "newer"
    assert ends[last[-1]]["kind"] == "answer"
    assert all(ends[one]["kind"] in ("cancelled", "answer") for one in last)


def test_work_is_broken_off_when_asked(page):
    number = page.send("fit", scene=slow(), seconds=60)
    time.sleep(0.3)
    stop = page.send("cancel", of=number)
    ends = {}
    while len(ends) < 2:
        frame = page.next()
        if frame["kind"] != "progress":
            ends[frame["id"]] = frame
    assert ends[number]["kind"] == "cancelled" and ends[number]["why"] == "asked"
    assert ends[stop]["do"] == "cancel"
    assert page.ask("fit", scene=moons())[0]["kind"] == "answer"


def test_two_pages_do_not_disturb_one_another(page, port):
    other = Page(port)
    number = other.send("fit", scene=slow(), seconds=60)
    assert page.ask("fit", scene=moons())[0]["kind"] == "answer"
    stop = other.send("cancel", of=number)
    ends = {other.next()["kind"] for _ in range(2)}
    assert ends == {"cancelled", "answer"} and stop == number + 1
    other.close()


# --- six attacks, and some more ------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_a_foreign_host_is_refused(port, host):
    status, _, _ = http(port, "GET", f"/?token={TOKEN}", host=host)
    assert status == 403
    with pytest.raises(RefusedError):
        Page(port, host=host)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", None])
def test_a_foreign_origin_is_refused(port, origin):
    with pytest.raises(RefusedError):
        Page(port, origin=origin)
    if origin is not None:
        status, _, _ = http(port, "POST", "/table", upload(CSV), origin=origin, **JSON)
        assert status == 403


def test_another_port_of_this_machine_is_foreign(port):
    with pytest.raises(RefusedError):
        Page(port, origin="http://127.0.0.1:1")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_post_of_another_type_is_refused(port, kind):
    headers = {**JSON, "content_type": kind}
    assert http(port, "POST", "/table", upload(CSV), **headers)[0] == 415


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x"])
def test_nothing_is_told_without_the_token(port, token):
    with pytest.raises(RefusedError):
        Page(port, token=token)
    query = "" if token is None else f"?token={token}"
    assert http(port, "GET", f"/{query}")[0] == 401
    wrong = {**JSON, "authorization": f"Bearer {token}"}
    assert http(port, "POST", "/table", upload(CSV), **wrong)[0] == 401


PATHS = [
    "/page/../run.py", "/page/..%2frun.py", "/page/%2e%2e/run.py", "/page//etc/passwd",
    "/page/....//run.py", "/../../etc/passwd", "/page/index.html%00.js", "/page/C:%5cwindows",
    "/socket/../", "/page/", "//page/index.html",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out(port, path):
    status, _, body = http(port, "GET", path, authorization=f"Bearer {TOKEN}")
    assert status in (400, 404) and b"root:" not in body and b"uvicorn" not in body
    with pytest.raises(RefusedError):
        Page(port, path=path)


def test_an_upload_that_is_too_large_is_refused(port):
    status, _, body = http(port, "POST", "/table", upload(b"x" * 200_000), **JSON)
    assert status == 413 and b"bytes at most" in body
    status, _, _ = http(port, "POST", "/table", upload(b"x" * 100_001), **JSON)
    assert status == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400),
        (b"{", 400),
        (b'{"base64": 7}', 400),
        (b'{"base64": "???"}', 400),
        (b"[" * 50_000, 400),
        (upload(b""), 422),
        (upload(b"\x00\xff\x00" * 50), 422),
    ],
)
def test_uploads_that_are_no_table_are_refused(port, body, status):
    found = http(port, "POST", "/table", body, **JSON)
    assert found[0] == status and json.loads(found[2])["error"]


def test_uploads_are_read_by_another_process(port):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    words = pa.array(["a" * 1000]).take(pa.array(np.zeros(100_000, dtype=np.int32)))
    for columns, said in (
        ({"a": words}, "more than 400000 bytes"),
        ({"a": np.arange(30.0), "y": ["u", "v"] * 15}, None),
    ):
        held = io.BytesIO()
        pq.write_table(pa.table(columns), held)
        status, _, body = http(port, "POST", "/table", upload(held.getvalue()), **JSON)
        found = json.loads(body)
        assert (status, found.get("rows")) == ((200, 30) if said is None else (422, None)), found
        assert said is None or said in found["error"]
    status, _, body = http(port, "POST", "/table", upload(b"", name="[" * 2000), **JSON)
    assert status == 400


@pytest.mark.slow
def test_a_file_that_needs_too_much_memory_or_time_is_refused(tmp_path, monkeypatch):
    def read(content, **limits):
        return _read(content, StudioLimits(spare=False, **limits))

    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "sitecustomize.py").write_text(
        "import time\n"
        "from mercer.studio.jobs import bench, table\n"
        "def read_table(content, limits):\n"
        "    return time.sleep(60) if content == b'slow' else bytearray(1 << 40)\n"
        "table.read_table = read_table\n"
    )
    with pytest.raises(ValueError, match="too much memory"):
        read(b"large")
    begun = time.monotonic()
    monkeypatch.setattr(session, "_GRACE", 0.5)
    with pytest.raises(ValueError, match="too much time or memory"):
        read(b"slow", seconds=0.1)
    assert time.monotonic() - begun < 40


def test_messages_that_are_none_are_refused(port):
    page = Page(port)
    for text in ("[]", "{", '{"id": "a", "do": "fit"}', '{"id": true}', "7"):
        page.say(text)
        found = page.next()
        assert found["kind"] == "refused" and found["id"] == 0
    for do in ([], {}, None, 7, ["fit"]):
        found, _ = page.ask(do)
        assert found["kind"] == "refused" and "nothing to do" in found["words"]
    page.close()


def test_a_message_that_is_too_long_ends_the_socket(port):
    page = Page(port)
    page.say("x" * (LIMITS.frame + 1000))
    with pytest.raises((RefusedError, OSError)):
        page.next()
    page.wire.close()


def test_answers_forbid_everything_from_elsewhere(port):
    for path in (f"/?token={TOKEN}", "/nothing"):
        _, headers, _ = http(port, "GET", path, authorization=f"Bearer {TOKEN}")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_page_names_no_outside_address():
    names = page_files()
    allowed = ("http://www.w3.org/",)  # names of XML's spaces, which nobody asks
    for name, (content, _) in names.items():
        for found in re.findall(rb"(?:https?|wss?)://[\w.]*[^\s\"'`]*", content):
            said = found.decode()
            comment = name.endswith((".txt", ".md")) or "vendor" in name
            assert said.startswith(allowed) or "${" in said or comment, (name, said)


def test_methods_that_nothing_has_are_refused(port):
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert http(port, method, "/table", **JSON)[0] in (401, 405, 415)


# --- notebooks and the command -------------------------------------------------------------------


def test_a_notebook_shows_the_same_page(tmp_path):
    path = tmp_path / "towns.csv"
    path.write_bytes(CSV)
    shown = show(path)
    try:
        port = int(shown.url.split(":")[2].split("/")[0])
        token = shown.url.partition("token=")[2]
        assert shown.url in shown._repr_html_() and "<iframe" in shown._repr_html_()
        status, headers, _ = http(port, "GET", f"/?token={token}", sec_fetch_site="cross-site")
        assert status in (200, 404) and "localhost:*" in headers["content-security-policy"]
        page = Page(port, token=token)
        assert page.hello["table"]["rows"] == 40
        page.close()
    finally:
        shown.close()
    assert not shown.thread.is_alive()
    with pytest.raises(ValueError, match="at most 10"):
        show(path, limits=StudioLimits(upload=10))


def test_the_command_says_where_and_ends():
    port = free_port()
    started = subprocess.Popen(
        [sys.executable, "-m", "mercer", "studio", "--port", str(port), "--no-browser"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    address = started.stderr.readline()
    token = address.strip().partition("?token=")[2]
    assert f"http://127.0.0.1:{port}/?token=" in address and len(token) > 20
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert http(port, "GET", "/")[0] == 401
            break
        except ConnectionError:
            time.sleep(0.1)
    started.send_signal(signal.SIGINT)
    assert started.wait(20) in (0, 130)
    started.stderr.close()
