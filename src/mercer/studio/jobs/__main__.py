"""The process behind a page: `python -m mercer.studio.jobs`, spoken to through its pipes.

Each line on standard input is a message: a request, the number of one to break off, or a table.
Each line on standard output is "number kind text", the text ready for the page. A thread listens,
so that a fit can be broken off: it raises KeyboardInterrupt in the working thread, which every fit
of the library raises again within a second. When the pipe is closed, the process ends.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import IO, Any

from mercer.studio.frames import text_of
from mercer.studio.jobs import job_of
from mercer.studio.jobs.bench import Bench
from mercer.studio.jobs.table import limited_memory
from mercer.studio.limits import RefusalError, StudioLimits

_WORDS = 2000  # characters of an error message
# errors of the library for unsuitable data and parameters; they are written for users
REFUSED = (ValueError, TypeError, ArithmeticError, MemoryError, RuntimeError)


def words_of(error: Exception) -> str:
    """Return what an error says; one without words, its name.

    Examples
    --------
    >>> words_of(MemoryError())
    'MemoryError'
    """
    return (str(error) or type(error).__name__)[:_WORDS]


class Process:
    """Does one request after the other.

    Parameters
    ----------
    inward : text stream
        Messages, a line each.
    outward : text stream
        Outgoing messages.
    """

    def __init__(self, inward: IO[str], outward: IO[str]) -> None:
        self.inward, self.outward = inward, outward
        self.waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.current: int | None = None
        self.broken_off: set[int] = set()
        self.bench = Bench()

    def run(self) -> None:
        """Work until the pipe is closed."""
        signal.signal(signal.SIGINT, self._interrupted)
        threading.Thread(target=self._listen, daemon=True).start()
        self._say(0, "ready", {})
        while (message := self.waiting.get()) is not None:
            self._do(message)

    def _listen(self) -> None:
        for line in self.inward:
            message = json.loads(line)
            if "begin" in message:  # another page, which starts its own count of requests
                with self.lock:
                    self.broken_off.clear()
                continue
            if "cancel" not in message:
                self.waiting.put(message)
                continue
            with self.lock:
                self.broken_off.add(message["cancel"])
                if self.current == message["cancel"]:
                    signal.raise_signal(signal.SIGINT)  # the handler runs in the main thread
        os._exit(0)  # the client is gone, so the running fit has no reader

    def _interrupted(self, number: int, frame: Any) -> None:
        if self.current in self.broken_off:
            raise KeyboardInterrupt

    def _do(self, message: dict[str, Any]) -> None:
        if "limits" in message:
            self.bench.limits = StudioLimits(**message["limits"])
        elif "forget" in message:
            self.bench.tables.pop(message["forget"], None)
        elif "table" in message:
            self._keep(message)
        else:
            self._answer(message)

    def _keep(self, message: dict[str, Any]) -> None:
        content = base64.b64decode(message["base64"])
        with contextlib.suppress(*REFUSED):  # requests that need it will say that it is not here
            with limited_memory(self.bench.limits):
                self.bench.keep(message["table"], message["file"], content)

    def _answer(self, request: dict[str, Any]) -> None:
        name, begun = request["id"], time.perf_counter()
        try:
            with self.lock:
                self.current = name
            if name in self.broken_off:
                raise KeyboardInterrupt
            found = self._worked(request)
            kind = "answer"
        except KeyboardInterrupt:
            kind, found = "cancelled", {"why": "asked"}
        except RefusalError as error:
            kind, found = "refused", {"words": error.words[:_WORDS], "parameter": error.parameter}
            if error.position is not None:
                found["position"] = error.position
        except REFUSED as error:
            kind, found = "refused", {"words": words_of(error), "parameter": None}
        except Exception as error:  # a mistake in here: told, and the next request is answered
            traceback.print_exc()
            said = f"this could not be done, by a mistake of the studio: {words_of(error)}"
            kind, found = "refused", {"words": said, "parameter": None}
        self.current = None
        self.broken_off.discard(name)
        self._say(
            name, kind, {"do": request["do"], **found, "seconds": time.perf_counter() - begun}
        )

    def _worked(self, request: dict[str, Any]) -> dict[str, Any]:
        def tell(fields: dict[str, Any]) -> None:
            self._say(request["id"], "progress", {"do": request["do"], **fields})

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits report their own warnings
            return job_of(request["do"])(self.bench, request, tell)

    def _say(self, name: int, kind: str, fields: dict[str, Any]) -> None:
        text = text_of({"id": name, "kind": kind, **fields})
        self.outward.write(f"{name} {kind} {text}\n")
        self.outward.flush()


def main() -> None:
    """Speak through the pipes; what else is printed goes to standard error."""
    outward = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    inward = os.fdopen(os.dup(0), encoding="utf-8")
    job_of("fit")  # imports are done before the first request comes
    Process(inward, outward).run()
    sys.exit(0)


if __name__ == "__main__":
    main()
