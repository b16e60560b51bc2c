"""Options that the commands about releases share, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.compare.comparable import FIELDS, UNKNOWN
from analysis.compare.verdict import DEFAULT_METRIC
from analysis.metrics import JUDGED
from logparse.errors import UsageError, unknown_name
from logparse.language import msg, tr

HistoryDir = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="DIR",
        help="Folder of recorded runs, or the URL of one on an object store (s3://bucket/runs).",
    ),
]
Threshold = Annotated[
    str,
    typer.Option(
        "--threshold",
        metavar="PERCENT",
        help="Change that matters, such as 1%. Less is no regression, however certain.",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help=f"What is judged; repeatable. Default {DEFAULT_METRIC}; one of {', '.join(JUDGED)}.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="FIELD",
        help="A field that may differ though it should be equal, such as micro_batch_size; repeatable. `unknown` is "
        "every field that no log tells.",
    ),
]


def warn(text: str) -> None:
    """Say on stderr what must be known beside the answer."""
    typer.echo(f"! {text}", err=True)


def parse_threshold(text: str) -> float:
    """``3%`` as 0.03. Raises UsageError for anything that is no percentage from 0 to 100."""
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = -1.0
    if not text.endswith("%") or not 0 <= value < 1:
        problem = tr("{name} is {value!r}", name="--threshold", value=text)
        raise UsageError(problem, remedy=tr("write a percentage, as in --threshold 3%"))
    return value


def check_allowed(fields: list[str] | None) -> list[str]:
    """``fields``, each of them one that must be equal, or UNKNOWN. Raises UsageError for any other."""
    for name in fields or ():
        if name not in (*FIELDS, UNKNOWN):
            remedy = tr("--allow takes one of {names}", names=", ".join((*FIELDS, UNKNOWN)))
            raise unknown_name(msg("field"), name, FIELDS, remedy)
    return fields or []
