"""The same as the command line, for notebooks and scripts: ``logparse.analyze("train.log", hw="910b3")``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.present.html import html
from analysis.present.views.analyze import compose
from analysis.project.choose_options import choose
from analysis.project.given_facts import check_quantities
from analysis.run.build import analyze_logs
from analysis.run.run import Run


def analyze(
    *logs: str | Path,
    hw: str | None = None,
    peak_tflops: float | None = None,
    peak_basis: str | None = None,
    model: str | None = None,
    formula: str | None = None,
    config: str | Path | None = None,
    log_format: str | None = None,
    dialect: str | None = None,
    warmup: int | None = None,
    strict: bool = False,
    all_files: bool = False,
    jobs: int | None = None,
    require: Sequence[str] = (),
    **quantities: Any,
) -> Run:
    """Read ``logs`` as one run and compute what it achieved.

    The arguments are the options of ``logparse analyze``; ``quantities`` are what the log may not print, such as
    ``world_size=8``, by the names of ``logparse.schema.QUANTITIES``. See ``analysis.run.run.Run``
    for the result, and ``analysis.run.target_verdicts.judge`` for whether it is what you ``require``.

    Raises UsageError, InputError or NoStepLineError, each with a remedy.
    """
    how = choose(
        check_quantities(quantities),
        model=model,
        config=Path(config) if config else None,
        formula=formula,
        hw=hw,
        peak_tflops=peak_tflops,
        peak_basis=peak_basis,
        warmup=warmup,
        log_format=log_format,
        dialect=dialect,
        strict=strict,
        all_files=all_files,
        jobs=jobs,
        require=require,
    )
    return analyze_logs([str(log) for log in logs], how)


def _html(run: Run) -> str:
    return html(compose(run))


Run.shown_as_html = _html
