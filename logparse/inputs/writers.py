"""What launchers put before a line: whose line it is, when it was printed, and the line without it."""

from __future__ import annotations

import json
from datetime import datetime
from re import sub

from logparse.lazy_regex import lazy_regex
from logparse.light_dataclass import dataclass

# A line of a rank follows, not any other.
_FOLLOWS = (
    r"(?=\[|Traceback|  File|File \"|During handling of |The above exception |(?:\w+\.)*\w+(?:Error|Exception)\b"
    r"|E[A-Z0-9]\d{4}: |(?i:rank)[ :=_]?\d|/\S*python[\d.]*: |[EWIF]\d{3,4} \d\d:\d\d:"
    r"|[A-Za-z][\w.-]*:\d+:\d+ \[\d)"
)
# Names of writers that are no words of a program, wherever they begin a line: PyTorch "[rank3]:", also "[Rank 3]:";
# torchrun "[default3]:"; Open MPI "[1,3]<stderr>:", Horovod "Fri Sep 25 16:52:53 2020[3]<stderr>:"; "local_rank=3 ";
# Kaggle "705.1s 1504 "; Ray "(WorkerDict pid=7, ip=10.0.0.1)", NeMo-RL "(PolicyWorker[rank=9] pid=7)"; kubectl
# "[pod/job-worker-3/main]".
_NAMED = (
    r"\[(?i:rank)[ :=]{0,2}(?P<rank>\d{1,7})\]:",
    r"\[default(?P<local>\d+)\]:",
    r"(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[(?:\d+,)?(?P<rank>\d+)\]<std(?:err|out)>:",
    r"\[?local_?rank[ :=]{0,2}(?P<local>\d+)\]?[:,]? ",
    r"\d+\.\d+s[\t ]+\d+[\t ]+",
    r"\((?:\w+(?:\[rank=(?P<rank>\d+)\])? )?(?:\w+ )?pid=\d+(?:, ip=(?P<host>[\w.:-]+))?\)",
    r"\(raylet(?:, ip=(?P<host>[\w.:-]+))?\)",
    r"\[pod/(?P<host>[\w.-]+)/[\w.-]+\]",
)
# Words that a program may print too: srun -l "3: ", pdsh "node7: " and "10.0.0.7: ", docker "trainer-1  | ".
_TASK = r"(?P<task>\d+): ?"
_HOST = r"(?:localhost|(?P<host>(?:[a-z]|(?!ERR)[A-Z]{3})[\w-]*\d[\w.-]*|\d{1,3}(?:\.\d{1,3}){3}))(?::| +\|)"
# Those that only certain text follows, or that say more than who writes: Megatron "[Rank 3] (after", whose memory it
# is, "[rank: 3]"; Primus "[rank-3/8]", of 8 ranks; nemo-run "job/3 "; mpiexec -l "[3] " before NCCL's lines; a logger's
# head, the stamp of kubectl --timestamps, glog "[E617 09:30:11.1 file.cpp:7]", but not F, which is fatal; NCCL
# "node7:4242:4300 [0] "; "rank 3: ", "global rank 3: ", "rank: 3 | ", "rank 11 (local_rank: 3): "; an editor's "537 ";
# msrun, which repeats lines of its workers, "output/msrun_log/worker_3.log:108:".
_FOLLOWED = (
    r"\[(?i:rank)[ :=]{0,2}(?P<rank>\d{1,7})\]",
    r"\[rank-(?P<rank>\d+)/\d+\]",
    _TASK + r"(?=\D)",
    r"[\w-]+/\d+ (?=\[)",
    r"\[(?P<task>\d+)\] (?=[A-Za-z][\w.-]*:\d+:\d+ \[)",
    r"-? ?(?:[\w.]+ - )?(?:INFO|WARNING|ERROR) - (?=\[(?i:rank))",
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d{4})[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:?"
    r"(?: std(?:out|err) [FP])?(?=[\s\[(])",
    r"\[?[EWIV]\d{3,4} \d\d:\d\d:\d\d[^\]]{0,200}\]",
    r"(?P<host>[A-Za-z][\w.-]*):\d+:\d+ \[\d+\] ",
    r"(?i:(?:global[ _])?rank)(?:: |[ :=_])?(?P<rank>\d{1,7})(?:/\d+)?(?: \(local_?rank:? ?(?P<local>\d+)\))?"
    r"(?:\]|:|,| -| \||(?= )) *" + _FOLLOWS,
    _HOST + " +" + _FOLLOWS,
    r"\d{1,6} " + _FOLLOWS,
    r"[\w./-]{0,200}?\bworker_(?P<rank>\d+)\.log[:-]\d+[:-]",
)
_PREFIX = lazy_regex(rf"\s*(?:{'|'.join((*_NAMED, *_FOLLOWED))})")


def _for_polars(*patterns: str) -> str:
    """A pattern of any of ``patterns``, without names and what may not be before it: polars knows neither."""
    return "|".join(sub(r"\(\?!ERR\)", "", sub(r"\?P<\w+>", "?:", pattern)) for pattern in patterns)


# What begins some lines of a log, and what begins nearly all: the writers of its lines.
NAMED, TASKS, HOSTS = _for_polars(*_NAMED), r"\d+:", _for_polars(_HOST)
# Ray names the worker before what it prints.
OF_WORKER = lazy_regex(r"\(\w+ pid=\d+(?:, ip=[\w.:-]+)?\)")
_RANK = lazy_regex(r"\[(?:rank(\d{1,7})|(?i:rank)[:=] ?(\d{1,7})|rank-(\d{1,7})/\d+)\]")
_STAMP = lazy_regex(
    r"(?<![\w/-])20\d\d-(?P<month>\d\d)-(?P<day>\d\d)[T _-](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?P<part>[.,]\d{1,6})?"
    r"|\b[EWIFV](?P<month>\d{1,2})(?P<day>\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?P<part>\.\d{1,6})?"
)
# A line of output as a notebook stores it: a JSON string whose line break is escaped; a code of a colour.
_OF_NOTEBOOK = lazy_regex(r'\s*("[^\n]*\\n")\s*,?\s*')
COLOUR = lazy_regex(r"\x1b\[[\d;]*m")
# Logs without a year are compared too; any leap year will do.
_YEAR = 2000


@dataclass(frozen=True)
class Line:
    """A line without its prefixes, and what these say: the rank, that on its node, and the host."""

    bare: str
    rank: int | None
    local_rank: int | None
    host: str | None


def read_prefixes(text: str) -> Line:
    """Take the prefixes off ``text``. The rank that PyTorch prints counts before the task that Slurm prints."""
    at, found = 0, dict[str, str]()
    while match := _PREFIX.match(text, at):
        # The rank in front of all counts among all ranks, one after it perhaps only in its group.
        found = {name: value for name, value in match.groupdict().items() if value is not None} | found
        at = match.end()
    rank = found.get("rank", found.get("task"))
    return Line(text[at:].lstrip(), _number(rank), _number(found.get("local")), found.get("host"))


def writer_of(text: str, line: Line | None = None) -> tuple[object, ...]:
    """What the prefixes of ``text``, its ``line`` where it is read, say of its process: ranks, host, worker of Ray."""
    line, worker = line or read_prefixes(text), OF_WORKER.search(text)
    return line.rank, line.local_rank, line.host, worker[0] if worker else None


def without_notebook(text: str) -> str:
    """``text``, a line of output that a notebook stores without its quotes and escapes."""
    match = _OF_NOTEBOOK.fullmatch(text)
    if match is None:
        return text
    try:
        line = str(json.loads(match[1]))
    except ValueError:
        line = match[1][1:-3]
    return COLOUR.sub("", line).strip()


def rank_before(text: str, at: int) -> int | None:
    """The rank whose prefix is the last before ``at``: ranks tear each other's lines."""
    ranks = _RANK.findall(text, 0, at)
    return int("".join(ranks[-1])) if ranks else None


def clock_of(text: str) -> float | None:
    """Seconds on the clock that ``text`` prints, comparable within a year; None without a clock."""
    match = _STAMP.search(text)
    if match is None:
        return None
    month, day, hour, minute, second = (int(match[part]) for part in ("month", "day", "hour", "minute", "second"))
    try:
        stamp = datetime(_YEAR, month, day, hour, minute, second)
    except ValueError:
        return None
    return comparable(stamp) + float("0." + (match["part"] or ".0")[1:])


def comparable(stamp: datetime) -> float:
    """Seconds since the beginning of a year: many stamps of a log name none."""
    return (stamp.replace(year=_YEAR, tzinfo=None) - datetime(_YEAR, 1, 1)).total_seconds()


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
