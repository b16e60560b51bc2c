"""What the model of a run may be called: the named models that have its shape, by what the log says of it.

Comes in: a run. Goes out: names of the catalogue, none where no model or too many have the shape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analysis.model.catalogue import catalogued, named_in
from analysis.model.same import has_shape, models_of, same_model
from analysis.model.shape import ModelShape
from analysis.run.other_model import SIZES, contradicted
from analysis.run.result import Analysis
from logparse.context.run_context import RunContext

# So many models of one shape are named.
MODELS_NAMED = 2


def names_of_model(analysis: Analysis, context: RunContext, sources: Sequence[str]) -> list[str]:
    """The name that the user gave; else those of its shape, of several only those that the log or its path says."""
    shape, origin = analysis.computation.shape, context.origin("num_layers")
    given = catalogued(str(origin.rule)) if origin and origin.kind == "model" else None
    # With flags that change its sizes it is another model.
    if given and same_model(given.shape, shape):
        return [given.name]
    name = str(context.get("model_name"))
    printed = catalogued(name) or named_in(name)
    # Models of several families have one shape: Code Llama has that of Llama 2.
    if printed and has_shape(printed, shape):
        return [printed.name]
    named = [model.name for model in models_of(shape)]
    text = " ".join((*sources, name)).lower().replace("_", "-")
    names = [name for name in named if _is_in(text, name)] or named
    return names if len(names) <= MODELS_NAMED else []


def _is_in(text: str, name: str) -> bool:
    """Whether ``name`` is in ``text``, and is no part of another one: llama-7b is one of codellama-7b."""
    return re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text) is not None


def printed_name(context: RunContext, shape: ModelShape) -> str | None:
    """What the log calls its model; None where that is the name of a model of other sizes."""
    name = context.get("model_name")
    model = (catalogued(name) or named_in(name)) if isinstance(name, str) else None
    sizes = {key: getattr(shape, key) for key in SIZES}
    return None if model and contradicted(model.quantities(), sizes) else name
