"""What ``analyze --shard`` leaves in the folder of ``-o``, and what is there already.

DIR/shards/2-of-4/shard.json    the account of part 2 of 4, written last: where it is, the part is finished
DIR/shards/2-of-4/runs.json     its part of the document of --json
DIR/shards/2-of-4/...           what analyze leaves for its runs, the charts in a folder for each
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from analysis.batch.shards import SHARDS, Account, Failure, Shard, Whole, account_from
from analysis.commands._run_results import RunResult
from analysis.files.outputs import write_bytes
from analysis.files.result_folder import ResultFolder
from analysis.present.views.analyze_json import document_of
from logparse.errors import InputError, LogparseError, UsageError
from logparse.language import tr
from logparse.light_dataclass import dataclass

ACCOUNT, RUNS = "shard.json", "runs.json"


def read_account(folder: ResultFolder) -> Account | None:
    """The account of the shard in ``folder``; None where none was finished. Raises InputError for a damaged one."""
    data = folder.read(ACCOUNT)
    return None if data is None else account_from(data, f"{folder}/{ACCOUNT}")


@dataclass(frozen=True)
class ShardFolder:
    """Where one shard of a whole is kept."""

    folder: ResultFolder
    shard: Shard
    whole: Whole

    def check(self) -> None:
        """Refuse a finished shard of another whole; one of the same is made again. Raises UsageError."""
        account = read_account(self.folder)
        if account is not None and (names := self.whole.differences(account.whole)):
            different = ", ".join(names)
            problem = tr("{path} already contains a shard with different {names}", path=self.folder, names=different)
            raise UsageError(problem, remedy=tr("give another folder with -o, or overwrite with --force"))

    @contextmanager
    def opened(self) -> Iterator[Path]:
        """A temporary folder for the results of the shard, which become those of the folder after the block."""
        with self.folder.opened("analyze", force=True) as path:
            yield path
            # Until the account is written again, nobody takes the shard for finished.
            self.folder.remove(ACCOUNT)

    def write_account(
        self, results: Sequence[RunResult], failed: Sequence[LogparseError], tables: Sequence[str]
    ) -> None:
        """Write what the shard came to, which finishes it."""
        failures = [Failure(error.exit_code, str(error), error.run) for error in failed]
        account = Account(self.shard, self.whole, [result.name for result in results], tables, failures)
        with self.folder.opened("shard", force=True) as path:
            write_bytes(account.to_json(), path / ACCOUNT)


def write_documents(path: Path, results: Iterable[RunResult]) -> None:
    """Write the JSON document of ``results`` into the folder ``path``."""
    before, after = json.dumps(document_of([])).split("[]")
    with (path / RUNS).open("w", encoding="utf-8") as file:
        file.write(f"{before}[")
        for number, result in enumerate(results):
            file.write(f"{', ' if number else ''}{result.output().document}")
        file.write(f"]{after}")


def read_shards(folder: ResultFolder) -> list[Account]:
    """The accounts of all shards of ``folder``, in their order.

    Raises InputError where there is none, or some are missing; UsageError where they are not of one whole.
    """
    names = (PurePosixPath(name) for name in folder.below(SHARDS).names())
    read_accounts = [read_account(folder.below(f"{SHARDS}/{name.parent}")) for name in names if name.name == ACCOUNT]
    accounts = sorted((account for account in read_accounts if account), key=lambda account: account.shard)
    if not accounts:
        remedy = tr("run every shard first, such as `{command}`", command=_command(folder, Shard(1, 4)))
        raise InputError(tr("no finished shard in {path}", path=folder), remedy=remedy)
    first, *others = accounts
    for other in others:
        if names_apart := first.whole.differences(other.whole):
            _refuse_mixed(folder, first.shard, other.shard, names_apart)
    wanted = {Shard(number, first.shard.of) for number in range(1, first.shard.of + 1)}
    if missing := sorted(wanted - {account.shard for account in accounts}):
        _refuse_incomplete(folder, missing)
    return accounts


def _refuse_mixed(folder: ResultFolder, first: Shard, other: Shard, names: Sequence[str]) -> None:
    different = ", ".join(names)
    problem = tr("shards {first} and {other} differ in {names}", first=first, other=other, names=different)
    remedy = tr("delete the folders of outdated shards, or run these shards again with --force")
    raise UsageError(problem, where=str(folder.below(SHARDS)), remedy=remedy)


def _refuse_incomplete(folder: ResultFolder, missing: Sequence[Shard]) -> None:
    problem = tr("missing or unfinished shards: {names}", names=", ".join(map(str, missing)))
    remedy = tr("run `{command}` with the logs and options of the other shards", command=_command(folder, missing[0]))
    raise InputError(problem, where=str(folder.below(SHARDS)), remedy=remedy)


def _command(folder: ResultFolder, shard: Shard) -> str:
    return f"logparse analyze --each LOG... -o {folder} --shard {shard}"
