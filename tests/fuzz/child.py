"""Cases in a process of their own: what crashes or does not end is a finding like any other."""

import multiprocessing
import os
import time
from pathlib import Path

from fuzz.case import draw_case
from fuzz.judge import Finding, judged

ASLEEP = 10  # times the patience: a case that waits for ever takes no processor time


class Child:
    """A process that runs one case after another."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, seed, index, name, patience):
        """Return the findings of a case, also where it crashed or did not end.

        Patience is processor time: beside other work a case takes longer, and is no finding.
        """
        used, begun = _processor_seconds(self.process.pid), time.monotonic()
        try:
            self.pipe.send((seed, index, name))
            while not self.pipe.poll(1.0):
                worked = _processor_seconds(self.process.pid) - used
                if max(worked, (time.monotonic() - begun) / ASLEEP) > patience:
                    message = f"did not end within {patience:g} s"
                    return [Finding("ends", message, draw_case(seed, index, name))]
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            message = f"the process died (exit code {self.process.exitcode})"
        return [Finding("ends", message, draw_case(seed, index, name))]

    def end(self):
        self.process.kill()
        self.process.join()


def _processor_seconds(pid):
    """Return what a process has used so far; where the system does not tell, the time of day."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return time.monotonic()
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _serve(pipe):
    while True:
        seed, index, name = pipe.recv()
        pipe.send(judged(seed, index, name)[1])
