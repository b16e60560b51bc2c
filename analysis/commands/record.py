"""``logparse record``: keep a run in a history. Reads options, calls, prints."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.batch.analyze_runs import choose_readers
from analysis.batch.record_runs import record_all
from analysis.commands import _options as options
from analysis.commands._cluster_options import Engine, ShardOption, check_cluster_options
from analysis.commands._forms import print_json
from analysis.commands._progress import reading_bar
from analysis.commands._release_options import HistoryDir, teller
from analysis.commands._run_flags import COMPUTING, READING, with_run_flags
from analysis.history.open_history import open_history
from analysis.history.pseudonym_key import pseudonyms_of_history
from analysis.history.record_run import Marks, parse_pairs
from analysis.history.release_names import check_release
from analysis.history.run_records import RUN_COLUMNS
from analysis.present.views.record import document, sentence
from analysis.project.project_file import history_place
from analysis.run.options import RunOptions
from logparse.inputs.run_discovery import named_runs
from logparse.language import visible
from logparse.light_dataclass import replace

Release = Annotated[
    str,
    typer.Option("--release", metavar="NAME", help='Name of the release, such as "CANN 8.0.RC2".'),
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="KEY=VALUE", help="Label for later searches, such as team=vision; repeatable."),
]
Versions = Annotated[
    list[str] | None,
    typer.Option(
        "--version-of",
        metavar="NAME=VALUE",
        help="Software version, such as cann=8.0.RC2; repeatable.",
    ),
]
# A selector takes these for columns.
TAKEN = ("release", *(column.name for column in RUN_COLUMNS))


@with_run_flags(**COMPUTING, **READING, strict=options.Strict)
def record(
    logs: options.Logs,
    how: RunOptions,
    release: Release,
    history: HistoryDir = None,
    label: Labels = None,
    version_of: Versions = None,
    each: options.Each = False,
    anonymise: options.Anonymise = False,
    shard: ShardOption = None,
    engine: Engine = "local",
    as_json: options.Json = False,
    lang: options.Language = None,
) -> None:
    """Record a run for later comparisons.

    The history is a folder; many jobs can record at the same time. The log itself is not stored.

    With --anonymise the key of the pseudonyms is kept in the history: the same host has the same one in every run.

    Exit code: 0 done, 2 wrong usage or unreadable input, 3 no step line found.
    """
    check_cluster_options(each, engine, shard)
    release = release.strip()
    check_release(release)
    marks = Marks(release, parse_pairs(label or [], "--label", TAKEN), parse_pairs(version_of or [], "--version-of"))
    report = teller()
    place = history_place(history)
    store = open_history(place, report, must_exist=False)
    if anonymise and place:
        how = replace(how, pseudonyms=pseudonyms_of_history(place))
    runs = named_runs(logs, each)
    runs = runs if shard is None else list(shard.part(runs))
    with reading_bar(as_json, [files for _, files in runs]) as progress:
        readers = replace(choose_readers(runs, how, engine), watches=progress.watches, done=progress.done)
        done, failed = record_all(runs, how, marks, store, report, readers, each)
    if as_json:
        print_json(document(done))
    elif done:
        typer.echo(visible("\n".join(map(sentence, done))))
    for error in failed:
        typer.echo(f"logparse: {error}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)
