"""``logparse merge``: the results of shards put together. Reads options, calls, prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from analysis.batch.peers import with_outliers
from analysis.batch.shards import SHARDS, Account
from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._index_files import PAGE, PAGES, write_index
from analysis.commands._many_runs import RunSelection
from analysis.commands._output_folder import write_verdicts
from analysis.commands._shard_folder import RUNS, read_shards
from analysis.files.outputs import prepare_folder, write_bytes, write_table
from analysis.files.result_folder import ResultFolder
from analysis.files.run_tables import TABLES
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.analyze_json import document_of_many
from analysis.present.views.requirements import missed_requirements
from analysis.present.views.runs import compose_runs
from analysis.run.checks.target_verdicts import exit_code
from logparse.errors import InputError, UsageError
from logparse.language import tr

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The -o folder of the shards.")]
Out = Annotated[
    ResultFolder | None,
    options.result_folder(help="Folder for tables and charts/ of all runs; default: DIR.", metavar="OUT"),
]


def merge(
    shards: Folder,
    out: Out = None,
    tables: options.Tables = "parquet",
    as_json: options.Json = False,
    where: options.Where = None,
    sort: options.Sort = None,
    force: options.Force = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """Merge the shards of `logparse analyze --each --shard i/n -o DIR` when all exist.

    The logs are not read again. Each shard keeps its own report.html.

    Exit code: as for `logparse analyze`.
    """
    folder, formats = options.folder_of(shards), options.table_formats(tables)
    asked = RunSelection.of(where or (), sort)
    target = out or folder
    _check(target, folder, force)
    accounts = read_shards(folder)
    failed = [failure for account in accounts for failure in account.failed]
    runs = [name for account in accounts for name in account.read]
    judged: list[dict[str, Any]] = []
    if runs:
        document, frames = _document(folder, accounts), dict(_tables(folder, accounts))
        judged = [requirement for run in document["runs"] for requirement in run["requirements"]]
        _write(folder, accounts, target, document["runs"], frames, formats, asked.order, force)
        shown = asked.of_runs(frames["runs"])
        if as_json:
            chosen = {run["name"]: run for run in document["runs"]}
            document["runs"] = [chosen[name] for name in shown["run"]]
            document |= document_of_many(frames["runs"], shown)
            print_json(document)
        else:
            parts = compose_runs(shown, frames["overheads"], frames["runs"], [failure.run for failure in failed])
            parts += missed_requirements(document["runs"])
            print_parts(make_console(no_color=no_color), parts)
            make_console(stderr=True, no_color=no_color).print(tr("wrote {folder}/", folder=target))
    for failure in failed if runs else failed[:1]:
        typer.echo(f"logparse: {failure.text}", err=True)
    if failed:
        raise typer.Exit(failed[0].exit_code)
    raise typer.Exit(exit_code(requirement["outcome"] for requirement in judged))


def _check(target: ResultFolder, folder: ResultFolder, force: bool) -> None:
    """Refuse a folder with results, unless ``force``; shards are none of them."""
    if str(target) != str(folder):
        target.check(force)
    elif not force and any(not name.startswith(f"{SHARDS}/") for name in folder.names()):
        raise UsageError(
            tr("folder {path} contains results other than shards", path=folder),
            remedy=tr("give another folder with -o, or overwrite with --force"),
        )


def _read(folder: ResultFolder, account: Account, name: str) -> bytes:
    data = folder.below(account.shard.folder).read(name)
    if data is None:
        path = f"{folder}/{account.shard.folder}/{name}"
        remedy = tr("run the shard again with --force")
        raise InputError(tr("no such file: {path}", path=path), remedy=remedy)
    return data


def _document(folder: ResultFolder, accounts: Sequence[Account]) -> dict[str, Any]:
    first, *others = (json.loads(_read(folder, account, RUNS)) for account in accounts)
    return {**first, "runs": [run for document in (first, *others) for run in document["runs"]]}


def _write(
    folder: ResultFolder,
    accounts: Sequence[Account],
    target: ResultFolder,
    runs: Sequence[dict[str, Any]],
    tables: Mapping[str, pl.DataFrame],
    formats: Sequence[str],
    order: str | None,
    force: bool,
) -> None:
    """Write what ``analyze`` would for all ``runs``, but the page of all. A run alone has no folder for its charts."""
    pages = "chart_format" in accounts[0].whole.options
    failed = [failure.text for account in accounts for failure in account.failed]
    with target.opened("analyze", force) as out:
        for name, frame in tables.items():
            for form in formats:
                write_table(frame, out / name, form)
        write_verdicts(out, runs)
        for account in accounts:
            _copy_charts(folder, account, out / "charts", alone=len(runs) == 1)
            if pages:
                _copy_pages(folder, account, out)
        write_index(out, tables, failed, pages, order, formats)


def _tables(folder: ResultFolder, accounts: Sequence[Account]) -> Iterator[tuple[str, pl.DataFrame]]:
    for name in TABLES:
        parts = [_read(folder, account, f"{name}.parquet") for account in accounts if name in account.tables]
        if parts:
            frame = pl.concat(pl.read_parquet(BytesIO(part)) for part in parts)
            # A shard knows its own runs alone.
            yield name, with_outliers(frame) if name == "runs" else frame


def _copy_charts(folder: ResultFolder, account: Account, charts: Path, alone: bool) -> None:
    drawn = folder.below(f"{account.shard.folder}/charts")
    for run in account.read:
        for name in drawn.below(run).names():
            place = charts / name if alone else charts / run / name
            prepare_folder(place.parent)
            write_bytes(_read(folder, account, f"charts/{run}/{name}"), place)


def _copy_pages(folder: ResultFolder, account: Account, out: Path) -> None:
    for run in account.read:
        name = f"{PAGES}/{run}/{PAGE}"
        prepare_folder((out / name).parent)
        write_bytes(_read(folder, account, name), out / name)
