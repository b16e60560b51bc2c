"""Find the rates of logs, by patterns of its own, in what `logparse analyze --json` calls printed. Prints a table.

    python benchmarks/printed_rates.py                      the fixtures
    python benchmarks/printed_rates.py path/to/logs ...     the logs in these folders, too

A row is a label of a log: how often it is there, and `printed`, or why it is not among the printed rates of the run.
Exit code 1 where a rate is missing without a reason.
"""

import argparse
import gzip
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import regex
from snapshot import find_logs

import logparse
from logparse.errors import LogparseError
from logparse.formats._base import LogFormat

ROOT = Path(__file__).parent.parent
NUMBER = r"(?P<number>\d[\d,]*\.?\d*(?:e[-+]?\d+)?)"
# What a rate is called or measured in, and what its name among the printed rates begins with.
PER_SECOND = r"[ _]?(?:/|per)[ _]?s(?:ec|econd)?\b"
KINDS = {
    "tflops": r"tflop|\btera ?flops",
    "mfu": r"\bmfu\b",
    "tokens": rf"tok(?:en)?s?{PER_SECOND}|\b(?:tps|wps|tgs)\b",
    "samples": rf"(?:sample|image|img|seq|sequence|sent)s?{PER_SECOND}|\bips\b",
    "throughput": r"throughput",
    "steps": rf"(?:\bit|iter|iteration|step|batche)s?{PER_SECOND}",
}
# What may follow it in a label.
ENDS = r"(?:[\w/.()\[\]-]*| per \w+)$"
LABELLED = regex.compile(rf"(?i)(?<![\w.])(?P<label>[a-z][\w./ ()\[\]-]{{1,40}}?)['\"]? ?[:=] ?['\"]?{NUMBER}")
BARE = regex.compile(rf"(?i)(?<![\w.=:-]){NUMBER} ?(?P<label>(?:model_)?tflop\w*(?:/s\w*)*|it/s|tok(?:en)?s/s\w*)")
# Labels, after the name of a format, of no rate of the training's steps, and why.
REASONS = {
    r"(?:lightning|nemo-bar|lightning-1) .*": "of a batch, of which a step may be several",
    r"prime-rl tokens/s": "of the passes of a step alone",
    r"(?i).*(?:peak|theoretical|max).*": "what the device could do",
    r"(?i).*(?:eval|val|test|valid).*": "of an evaluation",
    r"(?i).*(?:generation|generate|prompt|rollout|logprob|policy|actor|compute).*": "of a part of a step",
    r"(?i).*(?:total|avg|average|mean|global|running).*": "a mean since the start",
}
LEFT_OUT, OF_OTHER_LINES, MISSING = "left out by the format", "on no step line", "MISSING"
# A printed median is that of the rows that count: this far from those that a pattern finds at most.
NEAR = 0.02
SCALES = (1.0, 0.01, 1e3, 1e6, 1e-12, 2**40 / 1e12)


class Found(NamedTuple):
    """The values of a label of one kind of rate, and the lines that print it."""

    kind: str
    label: str
    values: Sequence[float]
    lines: Sequence[int]


def rates_in(text: str) -> list[Found]:
    """The rates that the patterns find in a log, a label each."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for match in (*LABELLED.finditer(line[:4000]), *BARE.finditer(line[:4000])):
            label = " ".join(match["label"].split())
            kind = next((kind for kind, words in KINDS.items() if regex.search(f"(?i)(?:{words}){ENDS}", label)), None)
            value = float(match["number"].replace(",", "") or 0)
            if kind and value:
                found.setdefault((kind, label), []).append((value, number))
    return [Found(*key, *zip(*places, strict=True)) for key, places in found.items()]


def why(rate: Found, printed: dict[str, Any], fmt: LogFormat, step_lines: set[int]) -> str:
    """`printed`, or why ``rate`` is not among the ``printed`` rates of a run of ``fmt``."""
    low, high = min(rate.values) * (1 - NEAR), max(rate.values) * (1 + NEAR)
    medians = [value["median"] for value in printed.values()]
    if any(low * scale <= value <= high * scale for value in medians for scale in SCALES):
        return "printed"
    if reason := next(
        (reason for words, reason in REASONS.items() if regex.fullmatch(words, f"{fmt.name} {rate.label}")), None
    ):
        return reason
    if rate.label in fmt.ignored or any(regex.fullmatch(words, rate.label) for words in fmt.ignored_patterns):
        return LEFT_OUT
    return OF_OTHER_LINES if step_lines.isdisjoint(rate.lines) else MISSING


def rows_of(path: Path) -> Iterator[tuple[str, str, int, float, str]]:
    """Kind, label, number, median and reason of each rate in the log ``path``."""
    read = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rates = rates_in(read.decode("utf-8", "replace").replace("\r", " "))
    if not rates:
        return
    try:
        run = logparse.analyze(str(path))
    except LogparseError as error:
        yield from (
            (*rate[:2], len(rate.values), median(rate.values), f"not read: {error.problem[:60]}") for rate in rates
        )
        return
    printed, step_lines = run.to_dict()["printed"], set(run.log.steps["line_number"])
    for rate in rates:
        reason = why(rate, printed, run.log.format, step_lines)
        yield *rate[:2], len(rate.values), median(rate.values), reason


def main() -> int:
    """Print the table of all folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "fixtures"], help="folders of logs")
    missing = 0
    print("| log | rate | label | times | median | |\n| --- | --- | --- | ---: | ---: | --- |")
    for folder in parser.parse_args().folders:
        for log in (log for log in find_logs(folder) if (folder / log).is_file()):
            for kind, label, n, middle, reason in rows_of(folder / log):
                missing += reason == MISSING
                print(f"| {log} | {kind} | {label} | {n} | {middle:g} | {reason} |", flush=True)
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
