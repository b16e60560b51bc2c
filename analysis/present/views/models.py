"""The models whose shape is known, or one with its source: parts for people, a list for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from analysis.model.catalogue import Model
from analysis.present.parts import Part, Sentence, Table
from logparse.language import tr


def models_parts(models: Sequence[Model]) -> list[Part]:
    """All models, one a row."""
    headings = (tr("model"), tr("layers"), tr("hidden"), tr("vocabulary"), tr("parameters"))
    return [Table(headings, tuple(map(_cells, models)))]


def _cells(model: Model) -> tuple[str, ...]:
    sizes = (model.shape.num_layers, model.shape.hidden_size, model.vocab_size, model.parameters)
    return (model.name, *("-" if size is None else f"{size:,}" for size in sizes))


def model_parts(model: Model) -> list[Part]:
    """One model: its names, its sizes, its source."""
    names = f"{model.name} ({', '.join(model.aliases)})" if model.aliases else model.name
    sizes = (Sentence(f"  {quantity} = {value}") for quantity, value in model.quantities().items())
    return [Sentence(names), *sizes, Sentence(tr("  source: {source}", source=model.source))]


def models_document(models: Sequence[Model]) -> list[dict[str, Any]]:
    """The JSON list, the same in every language."""
    return [asdict(model) for model in models]
