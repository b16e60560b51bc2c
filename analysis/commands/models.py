"""``logparse models``: the shapes that --model knows. Reads options, calls, prints."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from analysis.commands import _options as options
from analysis.model.catalogue import all_models, find_model
from analysis.screens.console import make_console
from analysis.screens.models import model_parts, models_document, models_parts
from analysis.screens.terminal import print_parts


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
        typer.echo(json.dumps(models_document(chosen), indent=1))
    else:
        print_parts(make_console(), model_parts(chosen[0]) if name else models_parts(chosen))
