"""``logparse baselines``: what others published. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.commands._forms import Form
from analysis.present.views.baselines import baseline_parts, baselines_document, baselines_parts
from analysis.published.baselines import Baseline, find_baseline, published, read_baselines
from logparse.errors import UsageError, unknown_name, use_one_of
from logparse.language import msg, tr

Name = Annotated[str | None, typer.Argument(help=msg("Row to show with its source; default: list all."))]
OfModel = Annotated[
    str | None,
    typer.Option("--model", help=msg("Rows for this model, such as llama2-7b.")),
]
OfDevices = Annotated[int | None, typer.Option("--devices", min=1, help=msg("Rows for this number of devices."))]
OfPrecision = Annotated[str | None, typer.Option("--dtype", help=msg("Rows for this precision, such as bf16."))]
OfPublisher = Annotated[str | None, typer.Option("--publisher", help=msg("Rows from this publisher."))]
Own = Annotated[
    Path | None,
    typer.Option("--file", help=msg("CSV file with your own rows, listed first; columns as in --json.")),
]


def baselines(
    name: Name = None,
    model: OfModel = None,
    devices: OfDevices = None,
    dtype: OfPrecision = None,
    publisher: OfPublisher = None,
    file: Own = None,
    as_json: options.Json = False,
    as_markdown: options.Markdown = False,
    no_color: options.NoColor = False,
    lang: options.Language = None,
) -> None:
    """List published training rates, filter them, or show one with its source.

    Rates are tokens/s per device. A row marked ! is inconsistent: the published rate does not match the published step
    time, batch size and number of devices.

    Exit code: 0 done (even if no row matches), 2 wrong usage or unreadable input.
    """
    form = Form(as_json, as_markdown, no_color)
    rows = (() if file is None else read_baselines(file)) + published()
    if name is None:
        chosen = _filtered(rows, model, devices, dtype, publisher)
    elif any(given is not None for given in (model, devices, dtype, publisher)):
        problem = tr("NAME cannot be combined with --model, --devices, --dtype or --publisher")
        raise UsageError(problem, remedy=tr("leave one out"))
    else:
        chosen = (find_baseline(rows, name),)
    parts = baselines_parts(chosen) if name is None else baseline_parts(chosen[0])
    form.print(lambda: baselines_document(chosen), lambda: parts)


def _filtered(
    rows: tuple[Baseline, ...], model: str | None, devices: int | None, dtype: str | None, publisher: str | None
) -> tuple[Baseline, ...]:
    """Raises UsageError for a number type or a publisher that no row has."""
    _check_known(msg("precision"), dtype, {row.precision for row in rows})
    _check_known(msg("publisher"), publisher, {row.publisher for row in rows})
    return tuple(row for row in rows if _kept(row, model, devices, dtype, publisher))


def _check_known(kind: str, name: str | None, values: Iterable[str | None]) -> None:
    names = sorted(known for known in values if known)
    if name is not None and name.lower() not in (known.lower() for known in names):
        raise unknown_name(kind, name, names, use_one_of(names, "logparse baselines"))


def _kept(row: Baseline, model: str | None, devices: int | None, dtype: str | None, publisher: str | None) -> bool:
    return (
        (model is None or model.lower() in row.title.lower())
        and devices in (None, row.devices)
        and (dtype is None or dtype.lower() == row.precision)
        and (publisher is None or publisher.lower() == row.publisher.lower())
    )
