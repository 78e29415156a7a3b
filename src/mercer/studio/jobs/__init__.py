"""Jobs of the process behind a page: one file for each kind of request, looked up by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from mercer.studio.jobs.bench import Bench, Job

# name -> module:function; each is imported when it is first asked for
_JOBS = {
    "fit": "mercer.studio.jobs.answers:fit_job",
    "why": "mercer.studio.jobs.why:why_job",
    "kernel": "mercer.studio.jobs.kernel:kernel_job",
    "preset": "mercer.studio.jobs.preset:preset_job",
    "tour": "mercer.studio.jobs.preset:tour_job",
    "export": "mercer.studio.jobs.export:export_job",
    "table": "mercer.studio.jobs.table:table_job",
    "curve": "mercer.studio.jobs.tuning:curve_job",
    "tune": "mercer.studio.jobs.tuning:tune_job",
    "prove": "mercer.studio.jobs.prove:prove_job",
    "report": "mercer.studio.jobs.report:report_job",
}
# asked by pages; the server itself asks for "table"
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
