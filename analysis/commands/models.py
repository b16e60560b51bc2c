"""``logparse models``: the shapes that --model knows. Reads options, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from analysis.commands import _completion
from analysis.commands import _options as options
from analysis.commands._forms import print_json
from analysis.commands._values import holds
from analysis.model.catalogue import Model, all_models, catalogued, find_model
from analysis.present.console import make_console
from analysis.present.terminal import print_parts
from analysis.present.views.models import model_parts, models_document, models_parts

Words = Annotated[list[str] | None, options.words(_completion.models)]


def models(
    words: Words = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list of models instead of a table.")] = False,
    lang: options.Language = None,
) -> None:
    """List the models that --model accepts, or show one with its source.

    A full name shows that model. Parts of a name list all matches, as in `logparse models qwen 7b`.
    Use --model for logs that do not print the model shape: `logparse analyze LOG --model llama2-7b`.
    """
    chosen = _chosen(words or ())
    if as_json:
        print_json(models_document(chosen))
    else:
        print_parts(make_console(), model_parts(chosen[0]) if words and len(chosen) == 1 else models_parts(chosen))


def _chosen(words: Sequence[str]) -> tuple[Model, ...]:
    """The model called so, else those with all ``words`` in one of their names. Raises UsageError where none is."""
    name = " ".join(words)
    if not name or catalogued(name):
        return (find_model(name),) if name else all_models()
    matches = tuple(model for model in all_models() if holds(words, (model.name, *model.aliases)))
    return matches or (find_model(name),)
