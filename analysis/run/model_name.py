"""What the model of a run may be called: the named models that have its shape, by what the log says of it.

Comes in: a run. Goes out: names of the catalogue, none where no model or too many have the shape.
"""

from __future__ import annotations

from analysis.model.same import models_of
from analysis.run.run import Run

# So many models of one shape are named.
MODELS_NAMED = 2


def names_of_model(run: Run) -> list[str]:
    """The names; of several only those that the log, its path or the user says."""
    named = [model.name for model in models_of(run.analysis.computation.shape)]
    origin = run.context.origin("num_layers")
    words = (*run.log.sources, str(run.context.get("model_name")), str(origin.rule if origin else ""))
    text = " ".join(words).lower()
    names = [name for name in named if name in text] or named
    return names if len(names) <= MODELS_NAMED else []
