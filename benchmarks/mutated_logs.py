"""Damage logs of every format at random, and hold each answer to what logparse promises. Exit code 1 for a fault.

    POLARS_MAX_THREADS=1 python benchmarks/mutated_logs.py     20,000 logs, or as many as until Ctrl-C
    python benchmarks/mutated_logs.py --first 700 --number 1   log 700 alone
    python benchmarks/mutated_logs.py --keep out/mutated       and write each log with a fault there

A log is a cut of a fixture or of the samples of a format, with some of its lines, numbers, labels, units, separators
and bytes changed. Its number alone decides what is changed. Each is also read in another form, drawn for it:
compressed, with other ends of lines, after a byte order mark, from standard input, or in two files. One in 50 goes
through the command, too.
"""

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import jsonschema
import regex
from helpers import run_logparse

import logparse
from analysis.present.html import html
from analysis.present.views.analyze import compose
from analysis.present.views.analyze_json import document
from logparse.errors import LogparseError
from logparse.formats import all_formats

ROOT = Path(__file__).parents[1]
NUMBER, COMMAND_EVERY, AGAIN_EVERY = 20_000, 50, 10
HEAD, BODY, LONG = 25, 35, 20_000
HARDWARE = (None, "910b3", "h100")
DIGITS = regex.compile(rb"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
WORDS = regex.compile(rb"[A-Za-z_]{2,}")
SIGNS = regex.compile(rb"[|:=,;\[\](){}/]")
VALUES = (
    *(b"0", b"-1", b"-0.0", b"1e-308", b"1e300", b"1e400", b"9" * 40, b"9223372036854775807", b"9223372036854775808"),
    *(b"nan", b"NaN", b"inf", b"-inf", b"null", b"None", b"", b"1,234,567.8", b"0.1.2", b"0x10", b"1_000", b"1e9"),
    *("１２３".encode(), b"1e-9", b"4294967296", b"true", b"--5", b"100%", b"1e5000000"),
)
UNITS = (b"ms", b"s", b"us", b"sec", b"min", b"h", b"K", b"M", b"G", b"GB", b"TFLOP/s", b"tokens/s", b"it/s", b"s/it")
OTHER_LINES = (
    *(b"", b"\x00" * 40, b"x" * LONG, b"|" * LONG, b"\xff\xfe\xfd", "训练 step: １".encode(), b"\x1b[31mred\x1b[0m"),
    *(b"Traceback (most recent call last):", b"RuntimeError: CUDA out of memory", b"  warnings.warn(", b"{}", b"{"),
    *(b"[rank3]: ValueError: x", b"\xe8\xae\xad".replace(b"\xad", b""), b"\r" * 9, b"a\rb", b"\x0c", b"\xc2\x85"),
)
Lines = list[bytes]


@dataclass
class Case:
    """A damaged log: its number, the log it was made from, its bytes, and the form it is read in, too."""

    number: int
    origin: str
    data: bytes
    form: str
    options: dict[str, Any]


@dataclass
class Tally:
    """What was read, and each fault under its kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: dict[str, list[str]] = field(default_factory=dict)

    def add(self, case: Case, kinds: Sequence[str]) -> None:
        """Note that ``case`` has faults of these ``kinds``."""
        for kind in kinds:
            self.faults.setdefault(kind, []).append(f"{case.number} ({case.origin})")


@cache
def seeds() -> tuple[tuple[str, Lines], ...]:
    """The logs that are damaged, with their names: every fixture, and the samples of every format."""
    logs = sorted((ROOT / "fixtures").rglob("*.log"))
    found = [(path.relative_to(ROOT / "fixtures").as_posix(), path.read_bytes().split(b"\n")) for path in logs]
    for fmt in sorted(all_formats(), key=lambda fmt: fmt.name):
        texts = [sample.text.encode("utf-8", "surrogateescape").split(b"\n") for sample in fmt.samples]
        found.append((f"samples of {fmt.name}", [line for text in texts for line in text] * 3))
    return tuple(found)


def cut(lines: Lines, chance: random.Random) -> Lines:
    """Some of the first lines, where settings are, and some that follow each other."""
    head = lines[: chance.randint(0, HEAD)] if len(lines) > BODY else []
    begin = chance.randint(len(head), max(len(head), len(lines) - BODY))
    return (head + lines[begin : begin + BODY]) or [b""]


def delete(lines: Lines, at: int, chance: random.Random) -> None:
    """Leave out one or several lines."""
    del lines[at : at + chance.choice((1, 1, 1, 5))]
    if not lines:
        lines.append(b"")


def repeat(lines: Lines, at: int, chance: random.Random) -> None:
    """Write one or several lines again."""
    lines[at:at] = lines[max(0, at - chance.choice((1, 1, 8))) : at + 1]


def swap(lines: Lines, at: int, chance: random.Random) -> None:
    """Let two lines change places."""
    other = chance.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def tear(lines: Lines, at: int, chance: random.Random) -> None:
    """Break a line, and lose one of its parts or none."""
    place = chance.randint(0, len(lines[at]))
    lines[at : at + 1] = chance.choice(
        ([lines[at][:place]], [lines[at][place:]], [lines[at][:place], lines[at][place:]])
    )


def join(lines: Lines, at: int, chance: random.Random) -> None:
    """Write the next line at the end or in the middle of a line."""
    other = lines[(at + 1) % len(lines)]
    place = chance.choice((len(lines[at]), chance.randint(0, len(lines[at]))))
    lines[at] = lines[at][:place] + other + (lines[at][place:] if chance.random() < 0.5 else b"")


def insert(lines: Lines, at: int, chance: random.Random) -> None:
    """Write a line of another program, or of none."""
    lines.insert(at, chance.choice(OTHER_LINES))


def number(lines: Lines, at: int, chance: random.Random) -> None:
    """Write another value in place of a number."""
    _replace(lines, at, DIGITS, chance, lambda _: chance.choice(VALUES))


def digit(lines: Lines, at: int, chance: random.Random) -> None:
    """Write another digit."""
    _replace(lines, at, regex.compile(rb"\d"), chance, lambda _: b"%d" % chance.randrange(10))


def scale(lines: Lines, at: int, chance: random.Random) -> None:
    """Append zeros to a number."""
    _replace(lines, at, DIGITS, chance, lambda old: old + b"0" * chance.choice((1, 3, 9, 30)))


def negate(lines: Lines, at: int, chance: random.Random) -> None:
    """Write a minus before a number."""
    _replace(lines, at, DIGITS, chance, lambda old: b"-" + old)


def everywhere(lines: Lines, at: int, chance: random.Random) -> None:
    """The same number of each line that has one at this place becomes the same other one."""
    numbers = len(DIGITS.findall(lines[at])) or 1
    place, value = chance.randrange(numbers), chance.choice(VALUES)
    for n, line in enumerate(lines):
        for index, match in enumerate(DIGITS.finditer(line)):
            if index == place:
                lines[n] = line[: match.start()] + value + line[match.end() :]
                break


def unit(lines: Lines, at: int, chance: random.Random) -> None:
    """Write a unit after a number."""
    _replace(lines, at, DIGITS, chance, lambda old: old + chance.choice((b" ", b"")) + chance.choice(UNITS))


def separator(lines: Lines, at: int, chance: random.Random) -> None:
    """Write another sign in place of one that parts labels and values."""
    _replace(
        lines,
        at,
        SIGNS,
        chance,
        lambda _: chance.choice((b"|", b":", b"=", b",", b";", b"", b" ", b"\t", "：".encode())),
    )


def label(lines: Lines, at: int, chance: random.Random) -> None:
    """Change a word, or write another word of the log."""
    words = WORDS.findall(lines[chance.randrange(len(lines))]) or [b"loss"]
    _replace(lines, at, WORDS, chance, lambda old: chance.choice((chance.choice(words), old.upper(), old[1:], b"")))


def byte(lines: Lines, at: int, chance: random.Random) -> None:
    """Write a byte that text seldom has."""
    place = chance.randint(0, len(lines[at]))
    odd = chance.choice(
        (b"\x00", b"\xff", b"\xc3", b"\x1b", b"\r", b"\t", b"\xc2\xa0", b"\xe2\x80\x8b", b"\xef\xbb\xbf")
    )
    lines[at] = lines[at][:place] + odd + lines[at][place + chance.randint(0, 1) :]


def lengthen(lines: Lines, at: int, chance: random.Random) -> None:
    """Make a line thousands of characters long."""
    lines[at] += chance.choice((b" ", b"x", b" | a: 1", b"1", b"{")) * (LONG // 4)


def _replace(
    lines: Lines, at: int, pattern: regex.Pattern[bytes], chance: random.Random, new: Callable[[bytes], bytes]
) -> None:
    if matches := list(pattern.finditer(lines[at])):
        match = chance.choice(matches)
        lines[at] = lines[at][: match.start()] + new(match.group()) + lines[at][match.end() :]


CHANGES = (
    *(delete, repeat, swap, tear, join, insert, number, number, number, digit, scale, negate, everywhere, everywhere),
    *(unit, separator, label, byte, lengthen),
)


def encode(data: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The bytes as another program might have written them, and the form that the log is read in, too."""
    if chance.random() < 0.03:
        text = data.decode("utf-8", "replace")
        return text.encode(
            chance.choice(("utf-16", "utf-16-le", "gbk", "latin-1", "utf-32")), "replace"
        ), chance.choice(ANY)
    return data, chance.choice(FORMS)


ANY = ("gz", "stdin")
FORMS = (*ANY, "crlf", "bom", "split")


def case_of(n: int) -> Case:
    """The damaged log of number ``n``."""
    chance = random.Random(n)
    origin, log = chance.choice(seeds())
    lines = cut(log, chance)
    for _ in range(chance.choice((1, 1, 2, 3, 5, 8, 20))):
        chance.choice(CHANGES)(lines, chance.randrange(len(lines)), chance)
    end = b"" if chance.random() < 0.05 else b"\n"
    data, form = encode(b"\n".join(lines) + end, chance)
    options: dict[str, Any] = {"hw": chance.choice(HARDWARE)}
    if chance.random() < 0.3:
        options["world_size"] = chance.choice((1, 8, 4096))
    return Case(n, origin, data, form, options)


Answer = dict[str, Any]
# The error where one file holds several runs.
SEVERAL = "SeveralRunsError"


def answer_of(names: Sequence[str], options: dict[str, Any]) -> tuple[Answer, list[str]]:
    """The document that the API gives of ``names``, or the error, and the faults of it."""
    try:
        run = logparse.analyze(*names, **options)
    except LogparseError as error:
        return {"error": type(error).__name__, "exit": error.exit_code, "text": str(error)}, faults_of_error(error)
    answer = json.loads(json.dumps(document([run])))
    html(compose(run))
    return answer, [*faults_of(answer), *faults_of_steps(run)]


def faults_of_error(error: LogparseError) -> list[str]:
    """An error has one of the exit codes, and says what to try."""
    wrong = [] if error.exit_code in (2, 3, 4) else [f"error: exit code {error.exit_code}"]
    return wrong if error.remedy else [*wrong, f"error without remedy: {error.problem[:60]}"]


@cache
def validator() -> jsonschema.Draft202012Validator:
    """The published schema of the answer."""
    schema = json.loads((ROOT / "docs" / "schema" / "analyze.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def faults_of(answer: Answer) -> list[str]:
    """What an answer says that it must not, whatever the log."""
    wrong = [f"schema: {error.json_path}: {error.message[:80]}" for error in validator().iter_errors(answer)]
    wrong += [f"no number: {place}" for place, value in _leaves(answer) if value != value or value in (INF, -INF)]
    return wrong or [fault for run in answer["runs"] for check in PROMISES for fault in check(run)]


INF = float("inf")


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{place}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part, f"{place}[]")
    elif isinstance(value, float):
        yield place, value


def figures_are_positive(run: Answer) -> Iterator[str]:
    """An unknown figure is null; none is zero or negative."""
    for rate, row in run["rates"].items():
        yield from (
            f"rate {rate}: {name} is {value}" for name, value in row.items() if name != "steps" and _is_bad(value)
        )
    for name, metric in run["metrics"].items():
        if metric and metric["n"]:
            yield from (f"metric {name}: {key} is {metric[key]}" for key in STATISTICS if _is_bad(metric[key]))
    for name, printed in run["printed"].items():
        if printed and printed["median"] < 0 and name != "loss":
            yield f"printed {name}: {printed['median']}"


STATISTICS = ("median", "mean", "p10", "p90")


def _is_bad(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0


def settings_are_not_negative(run: Answer) -> Iterator[str]:
    """A setting that is unknown is null, not -1."""
    for name, fact in run["context"].items():
        value = fact["value"]
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
            yield f"context {name} is {value}"


def percentiles_are_in_order(run: Answer) -> Iterator[str]:
    """A median is within its percentiles, and a step time within its interval."""
    for name, metric in run["metrics"].items():
        if metric and metric["n"] and not metric["p10"] <= metric["median"] <= metric["p90"]:
            yield f"metric {name}: median outside p10 to p90"
    for rate, row in run["rates"].items():
        low, value, high = (row[f"step_time{end}_ms"] for end in ("_low", "", "_high"))
        if None not in (low, value, high) and not low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9):
            yield f"rate {rate}: step time outside its interval"


def shares_add_up(run: Answer) -> Iterator[str]:
    """Parts of the time are shares of it, and goodput is one."""
    shares = [part["share"] for part in run["time_breakdown"]]
    if shares and None not in shares and abs(sum(shares) - 1) > 1e-6:
        yield f"time breakdown: shares add up to {sum(shares):.3g}"
    if any(share is not None and not 0 <= share <= 1 + 1e-9 for share in shares):
        yield "time breakdown: a share outside 0 to 1"
    if any(part["seconds"] < 0 for part in run["time_breakdown"]):
        yield "time breakdown: negative seconds"
    if run["goodput"] is not None and not 0 <= run["goodput"] <= 1:
        yield f"goodput {run['goodput']}"


def more_than_the_peak_is_doubted(run: Answer) -> Iterator[str]:
    """A share of the peak above 1 is marked as impossible, or a check fails."""
    failed = {check["code"] for check in run["checks"] if not check["passed"]}
    for name in ("mfu", "hfu", "peak_utilization"):
        metric = run["metrics"].get(name)
        above = [rate for rate, row in run["rates"].items() if (row[name] or 0) > 1]
        if metric and (metric["median"] or 0) > 1 and not metric.get("impossible"):
            yield f"metric {name} above 1 without a doubt"
        if above and "rates_are_possible" not in failed and name not in run["impossible"]:
            yield f"rate {name} above 1 without a doubt"


def unknown_has_a_reason(run: Answer) -> Iterator[str]:
    """Where a figure is missing, a note or a failed check says why."""
    told = {note["code"] for note in run["notes"]} | {check["code"] for check in run["checks"] if not check["passed"]}
    reasons: set[str] = set()
    for figure, more in REASONS.items():
        reasons |= more
        if run["metrics"].get(figure) is None and not told & reasons:
            yield f"{figure} is unknown without a reason"


# Why a figure is missing; each needs those above it.
REASONS = {
    "tokens_per_second_per_device": {
        *("samples_rate_not_computed", "tokens_rate_not_computed", "no_tokens", "no_step_time", "no_row_counts"),
        "printed_rates_agree",
    },
    "tflops_per_second_per_device": {"flops_rate_not_computed", "layers_not_counted"},
    "peak_utilization": {"device_unknown", "device_not_listed", "number_type_unknown", "no_peak_of_type"},
    "mfu": {"mfu_not_computed", "mfu_not_counted"},
    "hfu": {"hfu_not_computed"},
}


PROMISES = (
    *(figures_are_positive, settings_are_not_negative, percentiles_are_in_order, shares_add_up),
    *(more_than_the_peak_is_doubted, unknown_has_a_reason),
)


def faults_of_steps(run: Any) -> list[str]:
    """Rows of steps: a time is positive, a counted row has one, an excluded row says why."""
    wrong = []
    for row in run.steps.iter_rows(named=True):
        if (ms := row["step_time_ms"]) is not None and not 0 < ms < INF:
            wrong.append(f"steps: step_time_ms {ms}")
        if not row["counted"] and row["excluded_reason"] is None:
            wrong.append("steps: excluded without a reason")
        wrong += [
            f"steps: {name} is {row[name]}" for name in PER_STEP if row.get(name) is not None and _is_bad(row[name])
        ]
    return sorted(set(wrong))


PER_STEP = (
    "tokens_per_second_per_device",
    "tflops_per_second_per_device",
    "mfu",
    "hfu",
    "global_batch_size",
    "iterations",
)


def split_in_two(data: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    """The first lines and the others."""
    lines = data.splitlines(keepends=True)
    at = chance.randint(1, max(1, len(lines) - 1))
    return b"".join(lines[:at]), b"".join(lines[at:])


@contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """While this lasts, standard input is ``data``, also where it is read by its number."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        kept = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(kept, 0)
            os.close(kept)


def differences(case: Case, answer: Answer) -> list[str]:
    """Where the same log in its other form gives another answer."""
    data, form = case.data, case.form
    if form == "stdin":
        with standard_input(data):
            other, wrong = answer_of(("-",), case.options)
        return [*wrong, *_differ(form, answer, other)]
    if form == "split":
        first, second = split_in_two(data, random.Random(case.number))
        names = ("a-1.log", "a-2.log")
        for name, part in zip(names, (first, second), strict=True):
            Path(name).write_bytes(part)
        other, wrong = answer_of(names, case.options)
        return [*wrong, *_differ_by_more_than_a_line(answer, other)]
    name, changed = {
        "gz": ("run.log.gz", gzip.compress(data, 1, mtime=0)),
        "crlf": ("run.log", data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")),
        "bom": ("run.log", b"\xef\xbb\xbf" + data),
    }[form]
    folder = Path(form)
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(changed)
    with chdir(folder):
        other, wrong = answer_of((name,), case.options)
    return [*wrong, *_differ(form, answer, other)]


def _differ_by_more_than_a_line(whole: Answer, split: Answer) -> list[str]:
    """A log in two files has the same steps, but for one whose lines are in both; two runs may have a file each."""
    if whole.get("error") == SEVERAL:
        return []
    if "error" in whole or "error" in split:
        lines = [0 if "error" in answer else answer["runs"][0]["coverage"]["step_lines"] for answer in (whole, split)]
        return [f"split: {whole.get('error')}, then {split.get('error')}"] if max(lines) > 1 else []
    (one,), (other,) = whole["runs"], split["runs"]
    wrong = [] if one["format"] == other["format"] else ["split: format"]
    if abs(one["coverage"]["step_lines"] - other["coverage"]["step_lines"]) > 1:
        wrong.append("split: step lines")
    return wrong


SOURCE = regex.compile(r"run\.log(?:\.gz)?|<?stdin>?|standard input|\\r")


def _differ(form: str, one: Answer, other: Answer) -> list[str]:
    """The first place where two answers differ; the name of the file aside."""
    # Of bytes that are no text the first portion decides which error they are: of a file it is larger.
    if "error" in one and "error" in other and form != "again":
        return []
    place = _first_difference(_unnamed(one), _unnamed(other))
    return [f"{form}: {place}"] if place else []


def _unnamed(answer: Answer) -> Any:
    return json.loads(SOURCE.sub("-", json.dumps(answer)).replace('"run"', '"-"'))


def _first_difference(one: Any, other: Any, place: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if key not in ("name", "text", "sources")]
        return next((d for key in keys if (d := _first_difference(one.get(key), other.get(key), f"{place}.{key}"))), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next((d for a, b in zip(one, other, strict=True) if (d := _first_difference(a, b, f"{place}[]"))), "")
    return "" if one == other else place or "answer"


def said_by_command(names: Sequence[str], case: Case, stdin: bytes = b"") -> Answer:
    """What ``logparse analyze --json`` prints, or its exit code."""
    flags = [
        word for name, value in case.options.items() if value for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    done = run_logparse("analyze", *names, "--json", "--no-draft", *flags, cwd=Path.cwd(), stdin=stdin)
    return {"exit": done.returncode} if done.returncode else json.loads(done.stdout, parse_constant=_refused)


def of_command(answer: Answer, names: Sequence[str], options: dict[str, Any]) -> Answer:
    """What the command says where the API gives ``answer``: of a log of several runs it shows each."""
    if answer.get("error") == SEVERAL:
        return json.loads(json.dumps(document(logparse.analyze_many(*names, **options))))
    return {"exit": answer["exit"]} if "exit" in answer else answer


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def hold(case: Case) -> tuple[str, list[str]]:
    """How a damaged log was answered, and each fault."""
    wrong: list[str] = []
    outcome = "fault"
    try:
        Path("run.log").write_bytes(case.data)
        answer, wrong = answer_of(("run.log",), case.options)
        outcome = answer.get("error", "answered")
        wrong += differences(case, answer)
        if case.number % AGAIN_EVERY == 0:
            wrong += _differ("again", answer, answer_of(("run.log",), case.options)[0])
            wrong += faults_of_diagnosis()
        if case.number % COMMAND_EVERY == 0:
            wrong += _differ(
                "command", of_command(answer, ("run.log",), case.options), said_by_command(("run.log",), case)
            )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # polars panics with an error that is no Exception
        wrong.append(_traceback(error))
    return outcome, wrong


def faults_of_diagnosis() -> list[str]:
    """What is wrong with the error, where the log cannot be diagnosed."""
    try:
        logparse.diagnose("run.log")
    except LogparseError as error:
        return faults_of_error(error)
    return []


def _traceback(error: BaseException) -> str:
    frames, trace = [], error.__traceback__
    while trace:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    ours = [f"{Path(file).name}:{line}" for file, line in frames if str(ROOT) in file and ".venv" not in file]
    return f"traceback: {type(error).__name__} at {ours[-1] if ours else '?'}: {str(error)[:80]}"


def hold_all(numbers: range, keep: Path | None = None) -> Tally:
    """Read the damaged logs of these numbers."""
    tally = Tally()
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for done, n in enumerate(numbers, 1):
            case = case_of(n)
            try:
                outcome, wrong = hold(case)
            except KeyboardInterrupt:
                break
            tally.outcomes[outcome] += 1
            tally.add(case, wrong)
            if wrong and keep:
                (keep / f"{n}.log").write_bytes(case.data)
                with (keep / "faults.txt").open("a", encoding="utf-8") as file:
                    file.write(f"{n}\t{case.origin}\t{case.form}\t{case.options}\t{wrong}\n")
            if done % 500 == 0:
                print(f"{done} of {len(numbers)}, {time.process_time() - begin:.0f} s", file=sys.stderr, flush=True)
    return tally


def main() -> int:
    """Read them all, and print each kind of fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--number", type=int, default=NUMBER, help="how many logs")
    parser.add_argument("--keep", type=Path, help="folder for the logs with a fault")
    given = parser.parse_args()
    keep = given.keep and given.keep.absolute()
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    tally = hold_all(range(given.first, given.first + given.number), keep)
    print(f"{tally.outcomes.total()} logs")
    print(*(f"{outcome}: {n}" for outcome, n in tally.outcomes.most_common()), sep="\n")
    for kind, where in sorted(tally.faults.items(), key=lambda one: -len(one[1])):
        print(f"{len(where):5} {kind}\n      {', '.join(where[:6])}")
    return int(bool(tally.faults))


if __name__ == "__main__":
    sys.exit(main())
