"""What the model of a run may be called: the named models that have its shape, by what the log says of it.

Comes in: a run. Goes out: names of the catalogue, none where no model or too many have the shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from analysis.model.catalogue import catalogued
from analysis.model.same import has_shape, models_of, same_model
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
    printed = catalogued(str(context.get("model_name")))
    # Its shape does not name it: Code Llama has that of Llama 2.
    if printed and printed.common_shape and has_shape(printed, shape):
        return [printed.name]
    named = [model.name for model in models_of(shape)]
    text = " ".join((*sources, str(context.get("model_name")))).lower()
    names = [name for name in named if name in text] or named
    return names if len(names) <= MODELS_NAMED else []
