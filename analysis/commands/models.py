"""``logparse models``: the shapes that --model knows. Reads options, calls, prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.model.catalogue import Model, all_models, find_model
from analysis.screens.console import make_console
from logparse.language import tr


def models(
    name: Annotated[str | None, typer.Argument(help="One model, by any of its names; leave out to list all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of models instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the models whose shape --model takes, or show one with its source.

    For logs that print no shape: `logparse analyze LOG --model llama2-7b`.
    """
    chosen = (find_model(name),) if name else all_models()
    if as_json:
        typer.echo(json.dumps([asdict(model) for model in chosen], indent=1))
    elif name:
        _print_one(chosen[0])
    else:
        _print_all(chosen)


def _print_all(chosen: tuple[Model, ...]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(tr("model"), no_wrap=True)
    for heading in (tr("layers"), tr("hidden"), tr("vocabulary"), tr("parameters")):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in chosen:
        sizes = (model.shape.num_layers, model.shape.hidden_size, model.vocab_size, model.parameters)
        table.add_row(model.name, *("-" if size is None else f"{size:,}" for size in sizes))
    make_console().print(table)


def _print_one(model: Model) -> None:
    console = make_console()
    console.print(f"{model.name} ({', '.join(model.aliases)})" if model.aliases else model.name)
    for quantity, value in model.quantities().items():
        console.print(f"  {quantity} = {value}")
    console.print(tr("  source: {source}", source=model.source))
