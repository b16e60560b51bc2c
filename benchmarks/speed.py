"""How fast logs are read, beside the scripts and tools that people use instead. Prints two Markdown tables.

Every reader runs in a process of its own, in turn with the others, start-up (a log of ten step lines) taken off. All
must find the same number of step lines. The logs are made up and kept in the folder --logs.

    python benchmarks/speed.py                                        the tables; ten minutes
    python benchmarks/speed.py --large --write docs/performance.md    also logs of 10 GB; into the page
    python benchmarks/speed.py --quick --check                        a minute; code 1 where half a target is missed
"""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from speed_cases import (
    FULL,
    LARGE,
    QUICK,
    QUICK_STARTS,
    READ,
    START,
    Batch,
    Target,
    ranking,
    reading,
    starting,
    targets,
)
from speed_logs import log_of_size
from speed_measure import MIB, Case, Figures, Results, machine, measure

BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
RANK_MIB = 10


def main() -> int:
    """Measure, print, judge."""
    options = arguments()
    options.logs.mkdir(parents=True, exist_ok=True)
    results: Results = {}
    load = os.getloadavg()[0]
    start = starting(options.logs, options.corpus)
    wanted = list(targets(logs=len(start[-1].command) - 3))
    if options.quick:
        start = [case for case in start if case.reader in QUICK_STARTS]
    measure_all(options, start, results)
    if options.check and (missed := {target.log for target in broken(wanted, results)}):
        print(f"measured again, in case the machine was busy: {', '.join(missed)}", file=sys.stderr)
        measure_all(options, start, results, missed)
    page = "\n".join((*sentences(options, load), "", *table(results), "", *verdicts(wanted, results)))
    print(page)
    if options.write:
        insert(options.write, page)
    bad = broken(wanted, results) if options.check else []
    for target in (target for target in wanted if options.check and target.is_missed(results) and target not in bad):
        print(f"not judged, since others kept the machine busy: {target.log}: {target.text}", file=sys.stderr)
    for target in bad:
        print(f"less than half of the target is reached: {target.log}: {target.text}", file=sys.stderr)
    return 1 if bad else 0


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="the most telling targets only, on smaller logs")
    parser.add_argument("--large", action="store_true", help="also logs of 10 GB, one after the other")
    parser.add_argument("--check", action="store_true", help="exit code 1 where less than half of a target is reached")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between the markers of this page")
    parser.add_argument("--logs", type=Path, default=Path("out/speed"), help="the folder of the logs")
    parser.add_argument("--corpus", type=Path, help="a folder of real logs for --each; by default fixtures/")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    return parser.parse_args()


def measure_all(
    options: argparse.Namespace, start: list[Case], results: Results, only: Iterable[str] | None = None
) -> None:
    """Measure batch after batch, or ``only`` those of some logs."""
    for batch in QUICK if options.quick else FULL:
        if only is None or batch.log in only:
            measure_batch(options.logs, batch, options.rounds, results)
    if only is None or START in only:
        measure(start, options.rounds, results)
    if not options.quick and only is None:
        measure(ranking(options.logs, RANK_MIB), options.rounds, results)
    for batch in LARGE if options.large and only is None else ():
        measure_batch(options.logs, batch, 1, results)


def measure_batch(folder: Path, batch: Batch, rounds: int, results: Results) -> None:
    """Measure the readers of a log. Raises RuntimeError where they disagree on the number of step lines."""
    cases = reading(folder, batch)
    measure(cases, rounds, results)
    if batch.large:
        log_of_size(folder, batch.kind, batch.mib).unlink()
    rows = {case.reader: results[case.log, case.reader].printed[0] for case in cases}
    rows = {name: number for name, number in rows.items() if number.isdigit()}
    if len(set(rows.values())) > 1:
        raise RuntimeError(f"{batch.log}: the readers disagree on the number of step lines: {rows}")


def broken(wanted: Iterable[Target], results: Results) -> list[Target]:
    """The targets of which not even half is reached."""
    return [target for target in wanted if target.is_broken(results)]


def reached(target: Target, results: Results) -> float | None:
    """How much of it; None where it was not measured."""
    try:
        return target.share(results)
    except KeyError:
        return None


def sentences(options: argparse.Namespace, load: float) -> list[str]:
    """On what it was measured, and how busy others kept it."""
    sizes = {batch.log: batch.mib for batch in (QUICK if options.quick else FULL)}
    logs = ", ".join(f"{log} {mib} MiB" for log, mib in sizes.items())
    rounds = f"The fastest and the usual of {options.rounds} runs"
    return [f"{machine()}. Processes that ran when it began: {load:.1f}.", "", f"{rounds}. Logs: {logs}."]


def table(results: Results) -> list[str]:
    """A row for each case."""
    head = (
        "log",
        "reader",
        "fastest, s",
        "usual, s",
        "start-up, s",
        "less start-up, s",
        "CPU, s",
        "peak, MiB",
        "as long",
    )
    rows = [row(log, reader, figures, results.get((log, READ))) for (log, reader), figures in results.items()]
    return markdown(head, rows, words=2)


def row(log: str, reader: str, figures: Figures, ours: Figures | None) -> tuple[str, ...]:
    """Its cells; the last says how many times as long as ours it takes."""
    seconds = (figures.wall, figures.usual, figures.start, figures.net, figures.cpu)
    beside = f"{figures.net / ours.net:.2f}" if ours else ""
    return (log, f"`{reader}`", *(f"{s:.2f}" for s in seconds), f"{figures.peak / MIB:,.0f}", beside)


def verdicts(wanted: Iterable[Target], results: Results) -> list[str]:
    """A row for each target that was measured."""
    head = ("log", "target", "wanted", "measured", "reached")
    rows = []
    for target in wanted:
        share = reached(target, results)
        limit = f"at least {target.least:g}" if target.least else f"at most {target.most:g}"
        told = "not measured" if share is None else f"{target.value(results):.3g} {target.unit}"
        verdict = "" if share is None else "yes" if share >= 1 else "no"
        rows.append((target.log, target.text, f"{limit} {target.unit}", told, verdict))
    return markdown(head, rows, words=len(head))


def markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], words: int) -> list[str]:
    """A table; all columns but the first ``words`` are numbers."""
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def insert(page: Path, text: str) -> None:
    """Put ``text`` between the markers of a page. Raises ValueError where it has none."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has no {BEGIN} and {END}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
