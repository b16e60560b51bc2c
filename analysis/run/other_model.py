"""A model that was given though the log prints another shape: the log's shape is used, and a warning says so.

Comes in: what the user gave, and what the log prints. Goes out: the same without such a model, and the warnings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from logparse.context.run_context import Fact, Given
from logparse.findings import Note, warning

# Sizes by which two models differ beyond doubt. Vocabularies are padded, and other sizes can be derived.
SIZES = ("num_layers", "hidden_size", "num_attention_heads")


def contradicted(sizes: Mapping[str, Any], printed: Mapping[str, Any]) -> bool:
    """Whether a model of these ``sizes`` is another than that of the ``printed`` ones, as far as both are known."""
    return any(printed.get(name) is not None and sizes.get(name, printed[name]) != printed[name] for name in SIZES)


def without_other_model(given: Given, printed: Mapping[str, Fact]) -> tuple[Given, list[Note]]:
    """``given`` without the models of another shape than the log prints, and a warning for each of them.

    A size that a flag gives as well is no contradiction: it overrides both.
    """
    flags = {name for layer in given.layers for name, fact in layer.items() if fact.origin.kind == "flag"}
    compared = [name for name in SIZES if name in printed and name not in flags]
    others: dict[str, Note] = {}
    for facts in (*given.layers, given.weaker):
        for name in compared:
            fact = facts.get(name)
            if fact is not None and fact.origin.kind == "model" and fact.value != printed[name].value:
                others.setdefault(fact.origin.rule or "", _contradiction(name, fact, printed[name]))
    layers = tuple(_without(layer, others) for layer in given.layers)
    return replace(given, layers=layers, weaker=_without(given.weaker, others)), list(others.values())


def _without(facts: Mapping[str, Fact], models: Mapping[str, Note]) -> dict[str, Fact]:
    return {name: fact for name, fact in facts.items() if fact.origin.kind != "model" or fact.origin.rule not in models}


def _contradiction(name: str, fact: Fact, printed: Fact) -> Note:
    fields = {"name": name, "value": fact.value, "printed": printed.value, "origin": printed.origin}
    return warning("model_contradicts_log", model=fact.origin.rule, **fields)
