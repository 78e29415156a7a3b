"""Cases in a process of their own: what crashes or does not end is a finding like any other."""

import multiprocessing

from fuzz.case import draw_case
from fuzz.judge import Finding, judged


class Child:
    """A process that runs one case after another."""

    def __init__(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, seed, index, name, patience):
        """Return the findings of a case, also where it crashed or did not end."""
        try:
            self.pipe.send((seed, index, name))
            if self.pipe.poll(patience):
                return self.pipe.recv()
            message = f"did not end within {patience:g} s"
        except (EOFError, OSError):
            self.process.join()
            message = f"the process died (exit code {self.process.exitcode})"
        return [Finding("ends", message, draw_case(seed, index, name))]

    def end(self):
        self.process.kill()
        self.process.join()


def _serve(pipe):
    while True:
        seed, index, name = pipe.recv()
        pipe.send(judged(seed, index, name)[1])
