"""The output files of a Slurm job, by its number: what ``scontrol show job`` prints of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from logparse.errors import InputError, reason_of
from logparse.language import tr

JOB_ID = re.compile(r"\d+(?:_\d+)?")
OUTPUT = re.compile(r"^\s*Std(?:Out|Err)=(\S.*?)\s*$", re.MULTILINE)
# A controller that does not answer must not hold up the start for longer.
TIMEOUT_SECONDS = 30


def with_outputs_of_jobs(arguments: Sequence[str]) -> list[str]:
    """``arguments`` with the output files of a job in place of its number. An existing file of that name wins.

    Raises InputError where Slurm is missing or does not know the job.
    """
    return [path for argument in arguments for path in (_outputs(argument) if _is_job(argument) else [argument])]


def _is_job(argument: str) -> bool:
    return JOB_ID.fullmatch(argument) is not None and not Path(argument).exists()


def _outputs(job: str) -> list[str]:
    """The files that the job ``job`` prints into."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", job], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except FileNotFoundError as error:
        problem = tr("there is no file {name}, and without scontrol no job of Slurm can be found", name=job)
        raise InputError(problem, remedy=tr("give the path of the log, or run logparse where Slurm is")) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = reason_of(error) if isinstance(error, OSError) else tr("no answer after {n} s", n=TIMEOUT_SECONDS)
        raise InputError(_problem(job, reason), remedy=tr("give the path of the log")) from error
    files = list(dict.fromkeys(OUTPUT.findall(done.stdout)))
    if done.returncode or not files:
        reason = (done.stderr.strip().splitlines() or [tr("it prints no StdOut")])[0]
        raise InputError(_problem(job, reason), remedy=tr("check the number of the job, or give the path of the log"))
    return files


def _problem(job: str, reason: str) -> str:
    return tr("scontrol shows no output of job {job}: {reason}", job=job, reason=reason)
