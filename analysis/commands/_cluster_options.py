"""Options of the commands that read many runs on many machines, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.batch.engine import ENGINES, check_engine
from analysis.batch.shards import Shard, parse_shard
from logparse.errors import UsageError
from logparse.language import tr

Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="|".join(ENGINES),
        help="Where to read runs: local, or an existing Ray cluster.",
    ),
]
ShardOption = Annotated[
    Shard | None,
    typer.Option(
        "--shard",
        parser=parse_shard,
        metavar="i/n",
        help="Analyze part i of n; then run `logparse merge`.",
    ),
]


def check_cluster_options(each: bool, engine: str, shard: Shard | None, *others: tuple[str, bool]) -> None:
    """Refuse options of many runs where there is one; of ``others`` each is a flag, and whether it is given.

    Raises UsageError.
    """
    check_engine(engine)
    for flag, given in (("--shard", shard is not None), ("--engine", engine != "local"), *others):
        if given and not each:
            problem = tr("{flag} requires --each", flag=flag)
            raise UsageError(problem, remedy=tr("add --each and pass one LOG per run"))
