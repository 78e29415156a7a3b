"""What a server has done so far, in the text format that Prometheus reads."""

from __future__ import annotations

import threading
import time
from collections import Counter


class Metrics:
    """Counters of a server.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.answered(200)
    >>> metrics.predicted(10, 0.5)
    >>> metrics.text().splitlines()[-2:]
    ['mercer_rows_total 10', 'mercer_predict_seconds_total 0.5']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._statuses: Counter[int] = Counter()
        self._rows, self._seconds = 0, 0.0

    def answered(self, status: int) -> None:
        """Count a response."""
        with self._lock:
            self._statuses[status] += 1

    def predicted(self, rows: int, seconds: float) -> None:
        """Count rows that were predicted."""
        with self._lock:
            self._rows += rows
            self._seconds += seconds

    def text(self) -> str:
        """Write all counters."""
        with self._lock:
            responses = [
                f'mercer_responses_total{{status="{status}"}} {count}'
                for status, count in sorted(self._statuses.items())
            ]
            return "\n".join(
                [
                    f"mercer_up_seconds {time.monotonic() - self._started:.1f}",
                    *responses,
                    f"mercer_rows_total {self._rows}",
                    f"mercer_predict_seconds_total {self._seconds:.6g}",
                    "",
                ]
            )
