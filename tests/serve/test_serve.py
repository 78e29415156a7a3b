"""A server answers those it should, as the model does, and refuses everybody else."""

import asyncio
import bz2
import csv
import gzip
import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import urllib.request
from html.parser import HTMLParser

import httpx
import numpy as np
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

import mercer
from mercer.serve import ServeLimits, application, connections, run
from mercer.serve.guard import Guard

HOST = "127.0.0.1:8000"
TOKEN = "a token"
RNG = np.random.default_rng(0)
X = RNG.normal(size=120)
TOWN = RNG.choice(["Ulm", "Bern", "<script>alert(1)</script>"], 120)
TABLE = {
    "x": X,
    "town": TOWN,
    "<img src=x onerror=alert(1)>": RNG.normal(size=120),
    "y": np.where(X + (TOWN == "Ulm") > 0, "up", "down"),
}
ROWS = [
    {"x": 2.0, "town": "Ulm", "<img src=x onerror=alert(1)>": 0.1},
    {"x": -2.0, "town": None, "<img src=x onerror=alert(1)>": None},
    {"x": None, "town": "never seen", "<img src=x onerror=alert(1)>": 0},
]


@pytest.fixture(scope="module")
def model():
    return mercer.fit(TABLE, "y", kernels=["linear"], importance=False)


def columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def asked(app, method, path, *, host=HOST, token=TOKEN, **rest):
    """Send one request to an application."""
    headers = {"host": host, **rest.pop("headers", {})}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"

    async def send():
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, path, headers=headers, **rest)

    return asyncio.run(send())


@pytest.fixture(scope="module")
def app(model):
    return application(model, token=TOKEN, hosts=[HOST, "[::1]:8000"])


def test_json_is_answered_as_the_model_does(app, model):
    found = asked(app, "POST", "/predict?proba=1", json={"rows": ROWS})
    assert found.status_code == 200, found.text
    np.testing.assert_array_equal(found.json()["predictions"], model.predict(columns(ROWS)))
    chances = model.predict_proba(columns(ROWS))
    np.testing.assert_array_equal(found.json()["probabilities"], chances)
    assert found.json()["classes"] == list(model.classes)
    assert asked(app, "POST", "/predict", json=ROWS).json().keys() == {"target", "predictions"}


def test_lines_and_csv_are_answered_likewise(app, model):
    truth = model.predict(columns(ROWS)).tolist()
    lines = "\n".join(map(json.dumps, ROWS))
    found = asked(app, "POST", "/predict", content=lines, headers=kind("application/x-ndjson"))
    assert found.json()["predictions"] == truth
    text = io.StringIO()
    writer = csv.DictWriter(text, list(ROWS[0]))
    writer.writeheader()
    writer.writerows(ROWS)
    found = asked(app, "POST", "/predict", content=text.getvalue(), headers=kind("text/csv"))
    assert found.headers["content-type"].startswith("text/csv")
    assert [row[0] for row in csv.reader(io.StringIO(found.text))] == ["y", *truth]


def test_numbers_are_answered_for_quantities():
    model = mercer.fit({"x": X, "y": 2 * X}, "y", kernels=["linear"], importance=False)
    app = application(model, token=None, hosts=[HOST])
    found = asked(app, "POST", "/predict", json={"rows": [{"x": 1.5}]}, token=None).json()
    assert found["predictions"] == model.predict({"x": [1.5]}).tolist()
    refused = asked(app, "POST", "/predict?proba=1", json={"rows": [{"x": 1.5}]}, token=None)
    assert refused.status_code == 422 and "probabilities" in refused.json()["error"]


def kind(value):
    return {"content-type": value}


def test_pages_for_people_and_programs(app, model):
    schema = asked(app, "GET", "/schema").json()
    assert [one["name"] for one in schema["columns"]] == list(ROWS[0])
    assert schema["classes"] == ["down", "up"] and schema["certified"]
    assert asked(app, "GET", "/health", token=None).json() == {"status": "ok"}
    assert 'mercer_responses_total{status="200"}' in asked(app, "GET", "/metrics").text
    shown = asked(app, "GET", f"/?token={TOKEN}".replace(" ", "%20"), token=None)
    assert shown.status_code == 200
    assert "default-src 'none'" in shown.headers["content-security-policy"]

    found = set()

    class Elements(HTMLParser):
        def handle_starttag(self, tag, attrs):
            found.add(tag)
            assert not any(name.startswith("on") for name, _ in attrs)

    Elements().feed(shown.text)
    assert not found & {"script", "img", "iframe"}
    assert TOKEN not in shown.text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8000.evil.example", "",
             "127.0.0.1:8000@evil.example", "localhost:8000\x00", "[::1]", "[::1]:8000:8000"],
)  # fmt: skip
def test_other_hosts_are_refused(app, host):
    assert asked(app, "GET", "/health", host=host).status_code == 403


def test_this_host_by_its_other_name(app):
    assert asked(app, "GET", "/health", host="[::1]:8000").status_code == 200


def raw(app, headers, path="/health", method="GET"):
    """Call an application as a server does, with headers that no client would send."""
    sent = []
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": headers, "http_version": "1.1", "scheme": "http",
        "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"]


def test_two_hosts_or_none_are_refused(app):
    assert raw(app, [(b"host", HOST.encode())]) == 200
    assert raw(app, []) == 403
    assert raw(app, [(b"host", HOST.encode()), (b"host", b"evil.example")]) == 403


def test_sockets_are_closed(app):
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(app({"type": "websocket", "headers": []}, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"file://{HOST}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=str,
)
def test_other_sites_are_refused(app, headers):
    answer = asked(app, "POST", "/predict", json={"rows": ROWS}, headers=headers)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    own = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    assert asked(app, "POST", "/predict", json={"rows": ROWS}, headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/", "/schema", "/metrics", "/nothing"])
def test_without_the_token_nothing_is_told(app, path):
    assert asked(app, "GET", path, token=None).status_code == 401
    assert asked(app, "GET", path, token="another").status_code == 401
    assert asked(app, "POST", "/predict", token="", json={"rows": ROWS}).status_code == 401


@pytest.mark.parametrize("path", ["/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static"])
def test_there_are_no_files(app, path):
    assert asked(app, "GET", path).status_code in (404, 405)


@pytest.mark.parametrize(
    "value", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
def test_bodies_say_what_they_are(app, value):
    answer = asked(app, "POST", "/predict", content=b"{}", headers=kind(value))
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "must be JSON"),
        (b"{", "must be JSON"),
        (b"[" * 100_000, "row 1, from byte 1 on, must be an object"),
        (b'[{"x": [1]}]', "row 1, from byte 1 on"),
        (b'[{"x": 1}, {"x": {}}]', "row 2, from byte 10 on"),
        (b'[{"x": 1} {"x": 2}]', "row 1, from byte 1 on"),
        (b'[{"x": 1}', "row 1"),
        (b'[{"x": 1},]', "row 2"),
        (b'[{"x": 1}]]', "must be JSON"),
        (b'[{"x": 1}]}', "must be JSON"),
        (b'{"rows": [{"x": 1}]', "must be JSON"),
        (b'{"rows": [{"x": 1}], "rows": []}', "must be JSON"),
        (b'[{"x": 1, "town": "Ulm", "x": 2}]', "the key 'x' is duplicated"),
        (b'[{"x": "\xff"}]', "row 1 is not UTF-8"),
        (b'[{"x": tru}]', "not valid JSON"),
        (b'{"rows": [{"x": NaN}]}', "null"),
        (b'{"rows": 3}', "rows"),
        (b'{"rows": []}', "no rows"),
        (b'{"path": "/etc/passwd"}', "rows"),
        (b'{"rows": [{"x": 1.0}]}', "town"),
        (b'{"rows": [{"x": "word", "town": "Ulm", "<img src=x onerror=alert(1)>": 1}]}', "word"),
        (b'{"rows": [{"x": ' + b"9" * 5000 + b"}]}", ""),
        (b"\xff\xfe", "must be JSON"),
    ],
)
def test_wrong_rows_are_told_what_is_wrong(app, body, said):
    answer = asked(app, "POST", "/predict", content=body, headers=kind("application/json"))
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["error"]


def test_json_may_be_written_in_any_way(app, model):
    odd = {"x": 1.5, "town": 'a "]}," \\ \u2028 {[', "<img src=x onerror=alert(1)>": -1e-3}
    truth = model.predict(columns([odd, ROWS[0]])).tolist()
    for body in (
        json.dumps([odd, ROWS[0]], ensure_ascii=False),
        json.dumps({"rows": [odd, ROWS[0]]}, indent=3) + "\r\n ",
        "\ufeff" + json.dumps([odd, ROWS[0]], separators=(",", ":")),
    ):
        answer = asked(app, "POST", "/predict", content=body, headers=kind("application/json"))
        assert answer.json().get("predictions") == truth, answer.text


@pytest.mark.parametrize("kind_of_body", ["application/json", "application/x-ndjson", "text/csv"])
@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b"[" + b"{}," * 1_000_000 + b"{}]",
        b'{"rows": [' + b"[]," * 1_000_000 + b"[]]}",
        b'[{"x": [' + b"[]," * 1_000_000 + b"[]]}]",
        b'{"x": [' + b"[]," * 1_000_000 + b"[]]}\n",
        b'{"x": ' + b'{"y":' * 600_000 + b"1" + b"}" * 600_000 + b"}\n",
        b"{" + b",".join(b'"%d": 1' % k for k in range(200_000)) + b"}\n",
        b"{}\n" * 1_000_000,
        b"," * 3_000_000,
        b"x,town,<img src=x onerror=alert(1)>\n" + b",,\n" * 1_000_000,
    ],
    ids=range(10),
)
def test_bodies_that_grow_when_they_are_parsed(model, body, kind_of_body):
    app = application(model, token=None, hosts=[HOST])
    tracemalloc.start()
    try:
        answer = asked(
            app, "POST", "/predict", content=body, headers=kind(kind_of_body), token=None
        )
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.status_code in (413, 422), answer.text
    assert most < 15 * len(body) + (20 << 20)


def test_all_requests_together_have_a_limit_of_size(model):
    limits = ServeLimits(body=1000, bodies=2500, at_once=9)
    app = application(model, token=None, hosts=[HOST], limits=limits)

    async def body():
        yield b" " * 900
        await asyncio.sleep(0.2)

    async def several():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            post = {"headers": {"host": HOST, **kind("application/json")}}
            waiting = [client.post("/predict", content=body(), **post) for _ in range(5)]
            found = await asyncio.gather(*waiting)
            after = await client.post("/predict", json={"rows": ROWS}, headers={"host": HOST})
            return [one.status_code for one in found], after.status_code

    statuses, after = asyncio.run(several())
    assert sorted(statuses) == [422, 422, 429, 429, 429]
    assert after == 200 and app.held == 0


def test_limits_of_size(model):
    limits = ServeLimits(body=2000, rows=2)
    app = application(model, token=None, hosts=[HOST], limits=limits)
    many = asked(app, "POST", "/predict", json={"rows": ROWS}, token=None)
    assert many.status_code == 413 and "2 rows" in many.json()["error"]
    lines = "\n".join(map(json.dumps, ROWS))
    many = asked(
        app, "POST", "/predict", content=lines, headers=kind("application/x-ndjson"), token=None
    )
    assert many.status_code in (413, 422)
    large = asked(
        app, "POST", "/predict", content=b" " * 2001, headers=kind("text/csv"), token=None
    )
    assert large.status_code == 413

    async def pieces():
        for _ in range(5):
            yield b" " * 500

    large = asked(app, "POST", "/predict", content=pieces(), headers=kind("text/csv"), token=None)
    assert large.status_code == 413
    lied = {**kind("text/csv"), "content-length": "1" + "0" * 30}
    assert raw(app, [(b"host", HOST.encode()), *encoded(lied)], "/predict", "POST") == 413


def encoded(headers):
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def test_slow_clients_and_crowds_are_sent_away(model):
    limits = ServeLimits(at_once=2, body_seconds=0.2)
    app = application(model, token=None, hosts=[HOST], limits=limits)

    async def slow():
        yield b'{"rows":'
        await asyncio.sleep(60)

    async def several():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
            post = {"headers": {"host": HOST, **kind("application/json")}}
            waiting = [client.post("/predict", content=slow(), **post) for _ in range(5)]
            found = await asyncio.gather(*waiting)
            after = await client.post("/predict", json={"rows": ROWS}, headers={"host": HOST})
            return [one.status_code for one in found], after.status_code

    statuses, after = asyncio.run(several())
    assert sorted(statuses) == [408, 408, 429, 429, 429]
    assert after == 200


def test_a_fault_of_the_model_is_an_answer_without_details(model, monkeypatch):
    app = application(model, token=None, hosts=[HOST])
    monkeypatch.setattr(type(model), "predict", lambda *_: 1 / 0)
    answer = asked(app, "POST", "/predict", json={"rows": ROWS}, token=None)
    assert answer.status_code == 500
    assert "Zero" not in answer.text


def test_what_cannot_be_served_is_refused(model):
    with pytest.raises(TypeError, match="knows its columns"):
        application(mercer.SVC(), token=None)
    with pytest.raises(ValueError, match="can be reached from other computers"):
        run(model, host="0.0.0.0")
    with pytest.raises(ValueError, match="must not be empty"):
        application(model, token="")
    assert isinstance(application(model, token=None), Guard)


def test_the_command_serves_until_it_is_interrupted(model, tmp_path):
    mercer.save(model, tmp_path / "model.mercer")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mercer", "serve", "model.mercer", "--port", str(port)]
    server = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, env={**os.environ, "MERCER_TOKEN": TOKEN}
    )
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/predict",
            json.dumps({"rows": ROWS}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        for _ in range(600):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    found = json.load(answer)["predictions"]
                break
            except OSError:
                assert server.poll() is None, server.stderr.read()
                time.sleep(0.1)
        assert found == model.predict(columns(ROWS)).tolist()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) in (0, 130)
    finally:
        server.kill()
        server.stderr.close()


@pytest.fixture
def listening(model, monkeypatch):
    """Return the port of a server in this process, which waits a fifth of a second for a head."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    app = application(model, token=TOKEN, hosts=["any"])
    config = uvicorn.Config(
        app, port=0, http=connections.PromptProtocol, log_level="critical", limit_concurrency=9
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(timeout=60)


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: a"])
def test_silent_connections_are_closed(listening, sent):
    held = [socket.create_connection(("127.0.0.1", listening), timeout=60) for _ in range(9)]
    for one in held:
        one.sendall(sent)
    assert [one.recv(1) for one in held] == [b""] * 9
    for one in held:
        one.close()
    again = http.client.HTTPConnection("127.0.0.1", listening, timeout=60)
    for _ in range(3):  # of one connection
        again.request("GET", "/health", headers={"Host": "any"})
        answer = again.getresponse()
        assert answer.status == 200
        answer.read()
    assert again.sock.recv(1) == b""  # and closed when nothing more comes
    again.close()


def test_nobody_without_the_token_takes_a_place(model):
    app = application(model, token=TOKEN, hosts=[HOST], limits=ServeLimits(at_once=1))
    head = [(b"host", HOST.encode()), (b"content-type", b"application/json")]
    assert raw(app, head, method="POST") == 401  # it would be read for 30 seconds

    async def never():
        raise AssertionError("the body is not asked for")

    async def send(message):
        found.append(message)

    found = []
    scope = {"type": "http", "method": "GET", "path": "/health", "headers": head, "root_path": "",
             "query_string": b"", "http_version": "1.1", "scheme": "http"}  # fmt: skip
    asyncio.run(app(scope, never, send))
    assert found[0]["status"] == 200


def test_compressed_requests_are_refused(app):
    body = json.dumps(ROWS).encode()
    said = kind("application/json") | {"content-encoding": "gzip"}
    assert asked(app, "POST", "/predict", content=body, headers=said).status_code == 415
    for packed in (gzip.compress(b"x,town\n1,Ulm\n"), bz2.compress(b"x\n1\n")):
        found = asked(app, "POST", "/predict", content=packed, headers=kind("text/csv"))
        assert found.status_code == 422 and "compressed" in found.json()["error"]


def test_lengths_that_are_no_digits(app):
    head = [(b"host", HOST.encode()), (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"), (b"content-length", b"\xb2")]  # fmt: skip
    assert raw(app, head, path="/predict", method="POST") == 413


def test_mounted_below_a_prefix(app):
    mounted = Starlette(routes=[Mount("/models/1", app)])
    assert asked(mounted, "GET", "/models/1/health", token=None).status_code == 200
    assert asked(mounted, "GET", "/models/1/schema", token=None).status_code == 401
    assert asked(mounted, "POST", "/models/1/predict", json=ROWS).status_code == 200
    shown = asked(mounted, "GET", f"/models/1/?token={TOKEN}", token=None)
    assert shown.status_code == 200 and f"http://{HOST}/models/1/predict" in shown.text
    assert "href='schema'" in shown.text
