"""Named models: what a run need not print because the name of its model says it.

Comes in: a name. Goes out: the model's shape by glossary name, with its source. The data are in models.toml.
The padded vocabulary is not here: it depends on the run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from analysis.model.parameters import Details
from analysis.model.shape import ModelShape
from logparse.errors import unknown_name
from logparse.language import msg, tr


@dataclass(frozen=True)
class Model:
    """A named model. ``parameters`` and ``active_parameters`` are the published counts, None where there is none.

    ``common_shape``: models of other families have its shape, too.
    """

    name: str
    aliases: tuple[str, ...]
    shape: ModelShape
    details: Details
    vocab_size: int
    parameters: int | None
    active_parameters: int | None
    source: str
    common_shape: bool = False

    def quantities(self) -> dict[str, int | bool]:
        """What the model says of a run, by glossary name.

        Not whether the run trains multi-token prediction: published counts leave it out, and many train without it.
        """
        sizes = {f.name: getattr(self.shape, f.name) for f in fields(self.shape) if f.name != "mtp_num_layers"}
        return {name: size for name, size in sizes.items() if size is not None} | {"vocab_size": self.vocab_size}


@cache
def all_models() -> tuple[Model, ...]:
    """Every model of the catalogue, in its order."""
    text = resources.files("analysis.model").joinpath("models.toml").read_text(encoding="utf-8")
    return tuple(_model(name, table) for name, table in tomllib.loads(text).items())


def find_model(name: str) -> Model:
    """The model of that name or alias; case does not count, and ``_`` is ``-``.

    Raises UsageError for a name that is not in the catalogue.
    """
    model = catalogued(name)
    if model is None:
        remedy = tr("give the shape by flags: --num-layers, --hidden-size, --vocab-size and so on")
        raise unknown_name(msg("model"), name, _by_name(), remedy)
    return model


def catalogued(name: str) -> Model | None:
    """As ``find_model``; None for a name that is not in the catalogue. The owner before a slash does not count."""
    return _by_name().get(_normal(name.rpartition("/")[2]))


@cache
def _by_name() -> Mapping[str, Model]:
    return {known: model for model in all_models() for known in (model.name, *model.aliases)}


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def _model(name: str, table: dict[str, Any]) -> Model:
    return Model(
        name=name,
        aliases=tuple(table.pop("aliases")),
        details=Details(**table.pop("details", {})),
        vocab_size=table.pop("vocab_size"),
        parameters=table.pop("parameters", None),
        active_parameters=table.pop("active_parameters", None),
        source=table.pop("source"),
        common_shape=table.pop("common_shape", False),
        # Last, and given whatever is left, so that a misspelt key fails.
        shape=ModelShape(**table),
    )
