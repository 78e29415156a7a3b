"""What can be asked of the process behind a page, by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mercer.studio.work.bench import Bench, Job

# name -> module:function; each is imported when it is first asked for
_JOBS = {
    "fit": "mercer.studio.work.fit_job:fit_job",
    "why": "mercer.studio.work.why:why_job",
    "kernel": "mercer.studio.work.kernel:kernel_job",
    "preset": "mercer.studio.work.preset:preset_job",
    "tour": "mercer.studio.work.tour:tour_job",
    "export": "mercer.studio.work.export:export_job",
    "curve": "mercer.studio.work.tuning:curve_job",
    "tune": "mercer.studio.work.tuning:tune_job",
    "prove": "mercer.studio.work.prove:prove_job",
    "report": "mercer.studio.work.report:report_job",
}
QUICK = ("fit", "why", "kernel", "preset", "tour", "export")
LONG = ("curve", "tune", "prove", "report")


def job_of(name: str) -> Job:
    """Return what does a request of this name.

    Examples
    --------
    >>> job_of("fit").__name__
    'fit_job'
    """
    module, _, function = _JOBS[name].partition(":")
    found: Callable[[Bench, dict[str, Any], Any], dict[str, Any]] = getattr(
        import_module(module), function
    )
    return found
