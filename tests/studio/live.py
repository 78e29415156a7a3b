"""A studio that runs in a thread, and a page's side of its socket, for tests and benchmarks."""

import contextlib
import json
import socket
import threading
import time
from http.client import HTTPConnection

import uvicorn
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)

from mercer.studio.server import configuration

TOKEN = "a-token-that-tests-know"


def free_port():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        return free.getsockname()[1]


@contextlib.contextmanager
def studio(**options):
    """Run a studio; yields its port."""
    port = free_port()
    server = uvicorn.Server(configuration("127.0.0.1", port, TOKEN, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(60)


class RefusedError(Exception):
    """The socket was not opened."""


class Page:
    """A page: sends requests, reads messages."""

    def __init__(self, port, *, token=TOKEN, origin="own", host=None, path="/socket"):
        host = host or f"127.0.0.1:{port}"
        origin = f"http://127.0.0.1:{port}" if origin == "own" else origin
        headers = [] if origin is None else [(b"origin", origin.encode())]
        target = path if token is None else f"{path}?token={token}"
        self.wire = socket.create_connection(("127.0.0.1", port))
        self.wire.settimeout(200)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.wire.sendall(
            self.protocol.send(Request(host=host, target=target, extra_headers=headers))
        )
        self.frames, self.part, self.accepted, self.closed = [], [], False, None
        self.number = 0
        try:
            while not self.accepted:
                self._read()
            self.hello = self.next()
        except BaseException:
            self.wire.close()
            raise

    def _read(self):
        data = self.wire.recv(1 << 20)
        self.protocol.receive_data(data or None)
        for event in self.protocol.events():
            if isinstance(event, AcceptConnection):
                self.accepted = True
            elif isinstance(event, RejectConnection):
                raise RefusedError(event.status_code)
            elif isinstance(event, TextMessage):
                self.part.append(event.data)
                if event.message_finished:
                    self.frames.append(json.loads("".join(self.part)))
                    self.part = []
            elif isinstance(event, Ping):
                self.wire.sendall(self.protocol.send(event.response()))
            elif isinstance(event, CloseConnection):
                raise RefusedError(event.code)

    def next(self):
        """Return the next message."""
        while not self.frames:
            self._read()
        return self.frames.pop(0)

    def send(self, do, **fields):
        """Send a request; return its number."""
        self.number += 1
        self.say(json.dumps({"id": self.number, "do": do, **fields}))
        return self.number

    def say(self, text):
        """Send a text as it is."""
        self.wire.sendall(self.protocol.send(TextMessage(text)))

    def ask(self, do, **fields):
        """Send a request, and return what ends it and the progress on the way."""
        return self.wait(self.send(do, **fields))

    def wait(self, number):
        """Return what ends a request, and the progress on the way."""
        told = []
        while True:
            frame = self.next()
            if frame["id"] == number and frame["kind"] == "progress":
                told.append(frame)
            elif frame["id"] == number:
                return frame, told

    def close(self):
        """Close the page."""
        with contextlib.suppress(OSError):
            self.wire.sendall(self.protocol.send(CloseConnection(1000)))
        self.wire.close()


def http(port, method, path, body=None, **headers):
    """Send one request as it stands; return status, headers and body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.putrequest(method, path, skip_host="host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders()
    with contextlib.suppress(OSError):  # refused before all of it was sent
        connection.send(body or b"")
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found
