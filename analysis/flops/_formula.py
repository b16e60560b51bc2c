"""What a FLOPs formula is: a few named terms per token, and which of them recomputation runs again.

Comes in: a model shape and a sequence length. Goes out: floating-point operations per trained token. Tokens, seconds,
devices and peaks are not known here. A multiply and an add are two operations in every formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from analysis.flops._recomputation import CORE_ATTENTION, EVERYTHING, WORDS, Recomputation, Recompute
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass, field

# What a model can have and a formula can leave out, as the shape names it.
Ignorable = Literal["num_experts", "multi_latent_attention", "mtp_num_layers", "num_window_layers"]

# A matrix product costs as much forward as for each of the two gradients of the backward pass: three equal parts.
FORWARD_SHARE = 1 / 3
# Of a trained parameter among frozen weights: a multiply and an add, in each of the three parts.
FLOPS_PER_TRAINED = 6.0
ADAPTERS = "adapters"
# The term of the attention between tokens, whatever its length.
CORE = "attention core"

# Of each part of a layer that can be recomputed alone: the term that holds it, and its FLOPs per token.
Modules = Mapping[str, tuple[str, float]]


def no_modules(_shape: ModelShape, _seq_length: int) -> Modules:
    """The modules of a formula that does not separate the parts of its terms: none."""
    return {}


@dataclass(frozen=True)
class Formula:
    """One published way to count the operations of training; ``text`` is the model FLOPs per token in symbols.

    ``title``, ``phrase`` (its short name) and the names of the terms are translated where a catalogue knows them.
    ``needs`` names the sizes a given
    shape must know, which depends on the kind of model. ``terms`` gives the FLOPs per token, forward and backward
    without recomputation, and may only be called when none of them is missing. ``symbols`` writes the terms out in the
    letters of docs/formulas.md. ``selective`` and ``full`` name the terms whose forward pass runs a second time under
    that recomputation; those of ``selective`` hold no weights, so that none of their work falls away where weights are
    frozen; ``of_depths`` those of them that multi-token prediction alone has. ``modules`` gives the parts
    that can be recomputed alone, each with its term and FLOPs, as far as the formula separates them.

    ``ignores`` names what of a model makes no difference; where ``plain_layers`` holds, neither do linear attention and
    the like. ``quotes_recompute`` is of a formula whose own figure, the one called TFLOP/s, counts full recomputation.
    ``printed_as`` is the id of the printed formula that is the same count, by the recomputation it counts. One formula
    is the ``default`` for what a run achieved, one counts the model ``real_model``.
    """

    name: str
    title: str
    phrase: str
    source: str
    text: str
    needs: Callable[[ModelShape], tuple[str, ...]]
    terms: Callable[[ModelShape, int], Mapping[str, float]]
    symbols: Mapping[str, str]
    selective: tuple[str, ...]
    full: tuple[str, ...]
    of_depths: tuple[str, ...] = ()
    modules: Callable[[ModelShape, int], Modules] = no_modules
    ignores: tuple[Ignorable, ...] = ()
    plain_layers: bool = False
    quotes_recompute: bool = False
    printed_as: Mapping[Recompute, str] = field(default_factory=dict)
    default: bool = False
    real_model: bool = False

    def missing(self, shape: ModelShape) -> tuple[str, ...]:
        """Glossary names of the sizes this formula needs and ``shape`` does not know."""
        return shape.missing(self.needs(shape))

    def not_counted(self, shape: ModelShape) -> str | None:
        """What ``shape`` has that this formula would have to count and cannot; None where it can.

        A formula with ``plain_layers`` counts every layer as plain. No formula counts work other than training.
        """
        if self.plain_layers or shape.mixed_step:
            return shape.mixed_step
        return shape.uncounted if self.real_model else shape.special_layers

    def terms_per_token(self, shape: ModelShape, seq_length: int) -> Mapping[str, float] | None:
        """Model FLOPs per token by term, at ``seq_length`` tokens; None where a size or a part is not known."""
        dense = self._dense_terms(shape, seq_length)
        if dense is None or not has_frozen_weights(shape):
            return dense
        return {name: flops * self.passes(name, shape) * FORWARD_SHARE for name, flops in dense.items()}

    def _dense_terms(self, shape: ModelShape, seq_length: int) -> Mapping[str, float] | None:
        """The same as if no weight were frozen; adapters are a term of their own, where their size is known."""
        if self.missing(shape) or self.not_counted(shape):
            return None
        terms, trained = self.terms(shape, seq_length), shape.adapter_parameters
        return terms if trained is None else {**terms, ADAPTERS: FLOPS_PER_TRAINED * trained}

    def passes(self, term: str, shape: ModelShape) -> int:
        """Passes of ``term``, forward and backward: 3, and 2 where its weights are frozen."""
        frozen = has_frozen_weights(shape) and term not in (*self.selective, ADAPTERS)
        return 2 if frozen else 3

    def written(self, term: str, shape: ModelShape) -> str:
        """``term`` in symbols."""
        plain = self.symbols.get(term, "6 · N_a" if term == ADAPTERS else "")
        return f"2/3 · {plain}" if plain and self.passes(term, shape) == 2 else plain

    def model_flops_per_token(self, shape: ModelShape, seq_length: int) -> float | None:
        """FLOPs per token, forward and backward, recomputation not counted; None when a size is missing."""
        return self.hardware_flops_per_token(shape, seq_length, "none")

    def hardware_flops_per_token(
        self, shape: ModelShape, seq_length: int, recompute: Recompute | Recomputation
    ) -> float | None:
        """FLOPs per token with the forward passes that ``recompute`` repeats.

        None when a size is missing, or the formula does not separate a recomputed part from the rest of its term.
        """
        terms, again = self.terms_per_token(shape, seq_length), self.again_per_token(shape, seq_length, recompute)
        return None if terms is None or again is None else sum(terms.values()) + sum(again.values())

    def again_per_token(
        self, shape: ModelShape, seq_length: int, recompute: Recompute | Recomputation
    ) -> Mapping[str, float] | None:
        """FLOPs per token that ``recompute`` runs again, by term; None as above."""
        what = WORDS[recompute] if isinstance(recompute, str) else recompute
        terms, parts = self._dense_terms(shape, seq_length), self._parts(shape, seq_length, what.modules)
        if terms is None or parts is None:
            return None
        again = {name: terms[name] * self._share(name, shape, what) for name in (*self.full, ADAPTERS) if name in terms}
        for term, flops in parts:
            again[term] = again.get(term, 0.0) + flops * (1 - what.layers)
        return {name: flops * FORWARD_SHARE for name, flops in again.items() if flops}

    def most_per_token(self, shape: ModelShape, seq_length: int, recompute: Recomputation) -> float | None:
        """FLOPs per token at most: where a part cannot be separated, everything counts as recomputed."""
        known = self.hardware_flops_per_token(shape, seq_length, recompute)
        return self.hardware_flops_per_token(shape, seq_length, EVERYTHING) if known is None else known

    def least_per_token(self, shape: ModelShape, seq_length: int, recompute: Recomputation) -> float | None:
        """FLOPs per token at least: a part that cannot be separated counts as not recomputed."""
        known = self.hardware_flops_per_token(shape, seq_length, recompute)
        return self.hardware_flops_per_token(shape, seq_length, recompute.whole) if known is None else known

    def _share(self, term: str, shape: ModelShape, what: Recomputation) -> float:
        """The share of ``term`` that layers recomputed whole run again."""
        depths = 0 if "mtp_num_layers" in self.ignores else shape.mtp_num_layers or 0
        if term in self.of_depths or not depths or not shape.num_layers:
            return what.depths if term in self.of_depths else what.layers
        return (what.layers * shape.num_layers + what.depths * depths) / (shape.num_layers + depths)

    def _parts(self, shape: ModelShape, seq_length: int, names: frozenset[str]) -> list[tuple[str, float]] | None:
        """Term and FLOPs of each module of ``names``; None where the formula does not separate one of them."""
        terms = self._dense_terms(shape, seq_length)
        if terms is None:
            return None
        if names <= {CORE_ATTENTION}:
            return [(term, terms[term]) for term in self.selective if names]
        known = self.modules(shape, seq_length)
        # The whole layer with experts holds the shared ones.
        wanted = names - {CORE_ATTENTION} - ({"shared_experts"} if "moe" in names else set())
        if not wanted <= known.keys():
            return None
        core = [(term, terms[term]) for term in self.selective if CORE_ATTENTION in names]
        return core + [known[name] for name in sorted(wanted)]

    def repeated(self, recompute: Recompute) -> tuple[str, ...]:
        """The terms whose forward pass runs a second time under ``recompute``."""
        return {"none": (), "selective": self.selective, "full": self.full}[recompute]

    def quoted(self, recompute: Recompute | None) -> Recompute:
        """What the formula's own figure counts of a run's ``recompute``."""
        return "full" if self.quotes_recompute and recompute == "full" else "none"

    def quoted_part(self, recompute: Recomputation) -> Recomputation:
        """The same of layers of which a share is recomputed whole; parts of the others are never quoted."""
        return recompute.whole if self.quotes_recompute else WORDS["none"]


def has_frozen_weights(shape: ModelShape) -> bool:
    """Whether adapters alone are trained, of known size or not."""
    return bool(shape.lora) or shape.adapter_parameters is not None


def sizes(shape: ModelShape, *names: str) -> tuple[int, ...]:
    """The sizes ``names`` of ``shape``, in that order.

    Raises:
        ValueError: one of them is unknown; ``Formula.missing`` was not asked first.
    """
    if unknown := shape.missing(names):
        raise ValueError(f"unknown sizes: {', '.join(unknown)}")
    return tuple(getattr(shape, name) for name in names)
