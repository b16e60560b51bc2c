"""A run as it is shown: places in the files of the user; outside, pseudonyms for hosts, users, paths, runs and jobs.

No number changes: everything is computed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from analysis.flops import Formula
from analysis.hardware.devices import DevicePeak
from analysis.published.baselines import Baseline
from analysis.run.options import RunOptions
from analysis.run.run import Run
from logparse.decode.read_run import ParsedLog
from logparse.errors import LogparseError
from logparse.file_parts import with_own_places
from logparse.light_dataclass import replace
from logparse.masking import mask_text
from logparse.pseudonyms import FORMAT, anonymiser, anonymous_log, change_of
from logparse.texts import map_texts

Whole = TypeVar("Whole")
# What this project knows without a log.
OURS = (FORMAT, Formula, DevicePeak, Baseline)


def shown_run(run: Run, log: ParsedLog, how: RunOptions) -> Run:
    """``run``, made from ``log``, with each place in its own file, and with pseudonyms where ``how`` has them."""
    run = with_own_places(run, log.parts, OURS)
    if how.pseudonyms is None:
        return run
    known = replace(run, log=anonymous_log(run.log, how.pseudonyms))
    shown = map_texts(known, anonymiser(log, how.pseudonyms), OURS)
    # A project may be called like the framework that it uses.
    named = replace(shown.framework, name=run.framework.name, version=run.framework.version)
    return replace(shown, framework=named)


def shown_about(whole: Whole, files: Iterable[str], run: str, how: RunOptions) -> Whole:
    """``whole``, which is about the ``files`` of a ``run``, with pseudonyms where ``how`` has them."""
    return whole if how.pseudonyms is None else map_texts(whole, change_of({}, files, run, how.pseudonyms), OURS)


def shown_error(error: LogparseError, logs: Sequence[str], how: RunOptions) -> LogparseError:
    """``error``, about ``logs``, without secrets, and with pseudonyms where ``how`` has them."""
    change = None if how.pseudonyms is None else change_of({}, logs, "", how.pseudonyms)
    for name in ("problem", "where", "remedy", "detail", "ending"):
        value = getattr(error, name, None)
        setattr(error, name, map_texts(value if change is None else map_texts(value, change), mask_text))
    return error
