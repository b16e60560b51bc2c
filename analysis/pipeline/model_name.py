"""What the model of a run is called: by the user, by the catalogue where the shape is that of one, else by the log."""

from __future__ import annotations

from dataclasses import replace

from analysis.model.catalogue import Model, all_models, catalogued
from analysis.model.shape import ModelShape
from analysis.published.match import same_model
from logparse.context.run_context import RunContext

# Without these too many models are alike.
TELLING = ("num_layers", "hidden_size", "padded_vocab_size")


def model_name(context: RunContext, shape: ModelShape) -> str | None:
    """The name; of models alike in shape and vocabulary, as two generations can be, the newest. None where unknown."""
    origin = context.origin("num_layers")
    if origin is not None and origin.kind == "model":
        return origin.rule
    told: str | None = context.get("model_name")
    meant = catalogued(told) if told else None
    alike = [] if shape.missing(TELLING) else [m for m in all_models() if same_model(_with_words(m), shape)]
    if not alike:
        return told
    return meant.name if meant in alike else alike[-1].name


def _with_words(model: Model) -> ModelShape:
    return replace(model.shape, padded_vocab_size=model.vocab_size)
