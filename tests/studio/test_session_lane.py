"""A lane drops what is stale, ends processes that do not stop, and takes others in their place."""

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from mercer.studio import session
from mercer.studio.limits import StudioLimits
from mercer.studio.session import Lane, Worker, Workers
from mercer.studio.tables import Tables


class Puppet:
    """A process that does nothing but what the test says."""

    def __init__(self):
        self.sent, self.tables, self.ended = [], [], False
        self.lines = asyncio.Queue()

    def send(self, message):
        self.sent.append(message)

    def send_tables(self, tables):
        self.tables.append(list(tables))

    async def listen(self, heard):
        while (line := await self.lines.get()) is not None:
            if isinstance(line, ValueError):  # as `readline` of a line beyond its limit
                raise line
            heard(*line)

    def end(self):
        self.ended = True
        self.lines.put_nowait(None)


class Stock:
    """Puppets in stock."""

    def __init__(self):
        self.taken, self.back = [], []

    async def take(self):
        self.taken.append(Puppet())
        return self.taken[-1]

    def give_up(self, worker):
        worker.end()

    def give_back(self, worker):
        self.back.append(worker)


def played(play):
    """Run a play with a lane, its stock and what it said."""

    async def run():
        said, stock = [], Stock()
        lane = Lane(stock, Tables(StudioLimits()), lambda text: said.append(json.loads(text)))
        await play(lane, stock, said)
        lane.close()

    run_alone(run())


def run_alone(work):
    """Run in a thread of its own: that of the tests has a loop while a browser is driven."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


async def soon():
    for _ in range(6):
        await asyncio.sleep(0)


def fit(number, do="fit"):
    return {"id": number, "do": do, "scene": {}}


def test_requests_are_done_in_order_and_stale_ones_dropped():
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        worker = stock.taken[0]
        assert worker.sent == [fit(1)]
        lane.ask(fit(2, "why"), 9)
        lane.ask(fit(3, "why"), 9)
        assert said == [{"id": 2, "kind": "cancelled", "do": "why", "why": "newer"}]
        worker.lines.put_nowait((1, "progress", '{"id": 1, "kind": "progress"}'))
        worker.lines.put_nowait((1, "answer", '{"id": 1, "kind": "answer"}'))
        await soon()
        assert [one["kind"] for one in said] == ["cancelled", "progress", "answer"]
        assert worker.sent[-1] == fit(3, "why") and len(stock.taken) == 1
        worker.lines.put_nowait((1, "answer", '{"id": 1, "kind": "answer"}'))  # of the past
        await soon()
        assert len(said) == 3

    played(play)


def test_a_newer_request_breaks_the_running_one_off():
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        lane.ask(fit(2), 9)
        lane.ask(fit(3), 9)
        worker = stock.taken[0]
        assert worker.sent == [fit(1), {"cancel": 1}]
        worker.lines.put_nowait((1, "cancelled", "{}"))
        await soon()
        assert {one["id"]: one["why"] for one in said} == {1: "newer", 2: "newer"}
        assert worker.sent[-1] == fit(3) and not worker.ended

    played(play)


def test_a_process_that_does_not_stop_is_ended_and_replaced(monkeypatch):
    monkeypatch.setattr(session, "_LANE_PATIENCE", 0.0)

    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        assert lane.cancel(1) and not lane.cancel(7)
        await asyncio.sleep(0.01)
        assert stock.taken[0].ended and said[-1]["why"] == "asked"
        lane.ask(fit(2), 9)
        await soon()
        assert stock.taken[1].sent == [fit(2)]

    played(play)


def test_a_process_past_its_time_is_ended(monkeypatch):
    monkeypatch.setattr(session, "_GRACE", 0.0)

    async def play(lane, stock, said):
        lane.ask(fit(1), 0.0)
        lane.ask(fit(2, "why"), 9)
        await soon()
        await asyncio.sleep(0.01)
        assert stock.taken[0].ended
        assert said == [{"id": 1, "kind": "cancelled", "do": "fit", "why": "time"}]
        await soon()
        assert stock.taken[1].sent == [fit(2, "why")]

    played(play)


@pytest.mark.parametrize("waiting", [False, True])
def test_a_process_that_dies_is_told_of(waiting):
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        if waiting:
            lane.ask(fit(2, "why"), 9)
        await soon()
        stock.taken[0].lines.put_nowait(None)
        await soon()
        assert said == [{"id": 1, "kind": "cancelled", "do": "fit", "why": "ended"}]
        assert len(stock.taken) == 1 + waiting

    played(play)


def test_what_waits_can_be_taken_back():
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        lane.ask(fit(2, "why"), 9)
        assert lane.cancel(2) and said == [
            {"id": 2, "kind": "cancelled", "do": "why", "why": "asked"}
        ]

    played(play)


@pytest.mark.parametrize("busy", [False, True])
def test_a_process_with_nothing_to_do_is_kept_for_the_next_page(busy):
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        worker = stock.taken[0]
        if not busy:
            worker.lines.put_nowait((1, "answer", '{"id": 1, "kind": "answer"}'))
            await soon()
        lane.close()
        lane.close()
        await soon()
        if busy:
            assert worker.sent[-1] == {"cancel": 1} and not stock.back
            worker.lines.put_nowait((1, "cancelled", "{}"))
            await soon()
        assert stock.back == [worker] and not worker.ended
        assert [one["kind"] for one in said] == ([] if busy else ["answer"])

    played(play)


def test_a_process_that_does_not_stop_for_a_closed_page_is_ended(monkeypatch):
    monkeypatch.setattr(session, "_LANE_PATIENCE", 0.0)

    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        lane.close()
        await asyncio.sleep(0.01)
        assert stock.taken[0].ended and not stock.back and not said

    played(play)


def test_processes_in_stock_are_few_and_alive(monkeypatch):
    ended = []

    def process(alive=True):
        return SimpleNamespace(alive=alive, end=lambda: None, send=lambda message: None)

    async def new(self):
        return process()

    async def run():
        workers = Workers(StudioLimits())
        monkeypatch.setattr(Workers, "_new", new)
        monkeypatch.setattr(Workers, "give_up", lambda self, worker: ended.append(worker))
        first, dead, second, third = process(), process(False), process(), process()
        workers.give_back(first)
        workers.give_back(dead)
        workers.give_back(second)
        assert ended == [second]
        assert await workers.take() is first and ended == [second, dead]
        assert len(workers.stock) == 1  # the next one is on its way
        workers.closed = True
        workers.give_back(third)
        assert ended == [second, dead, third]
        await workers.close()

    run_alone(run())


def test_two_may_wait_for_the_end_of_a_process():
    async def run():
        worker, pipe = Worker(StudioLimits()), asyncio.subprocess.PIPE
        worker.process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", "input()", stdin=pipe, stdout=pipe
        )
        worker.end()
        await worker.gone()
        await asyncio.sleep(0)
        await worker.gone()
        assert not worker.alive

    run_alone(run())


def test_a_line_that_is_too_long_to_be_read_ends_the_process_and_not_the_page():
    async def play(lane, stock, said):
        lane.ask(fit(1), 9)
        await soon()
        stock.taken[0].lines.put_nowait(ValueError("chunk exceeds the limit"))
        await soon()
        assert said[-1]["why"] == "ended" and stock.taken[0].ended
        lane.ask(fit(2), 9)
        await soon()
        assert stock.taken[1].sent == [fit(2)]

    played(play)


def test_a_file_has_the_same_id_in_every_studio_and_another_file_has_another():
    first, second = Tables(StudioLimits()), Tables(StudioLimits())
    one, other, found = b"a,b\n1,2\n", b"a,b\n1,3\n", {"scene": {"table": {"id": ""}}}
    second.add("other.csv", other, found)
    assert first.add("one.csv", one, found)["id"] == second.add("same.csv", one, found)["id"]
    assert first.add("other.csv", other, found)["id"] == next(iter(second.files))
    assert len(first.files) == 2
    first.add("one.csv", one, found)
    assert len(first.files) == 2 and next(iter(first.files)) == next(iter(second.files))
