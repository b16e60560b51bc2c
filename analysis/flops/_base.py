"""What a FLOPs formula is: a few named terms per token, and which of them recomputation runs again.

Comes in: a model shape and a sequence length. Goes out: floating-point operations per trained token. Tokens, seconds,
devices and peaks are not known here. A multiply and an add are two operations in every formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from analysis.model.shape import ModelShape

Recompute = Literal["none", "selective", "full"]
# What a model can have and a formula can leave out, as the shape names it.
Ignorable = Literal["num_experts", "multi_latent_attention", "mtp_num_layers"]

# A matrix product costs as much forward as for each of the two gradients of the backward pass: three equal parts.
FORWARD_SHARE = 1 / 3


@dataclass(frozen=True)
class Formula:
    """One published way to count the operations of training; ``text`` is the model FLOPs per token in symbols.

    ``title`` and the names of the terms are translated where a catalogue knows them. ``needs`` names the sizes a given
    shape must know, which depends on the kind of model. ``terms`` gives the FLOPs per token, forward and backward
    without recomputation, and may only be called when none of them is missing. ``symbols`` writes the terms out in the
    letters of docs/formulas.md. ``selective`` and ``full`` name the terms whose forward pass runs a second time under
    that recomputation.

    ``ignores`` names what of a model makes no difference. ``quotes_recompute`` is of a formula whose own figure, the
    one called TFLOP/s, counts full recomputation. ``printed_as`` is the id of the printed formula that is the same
    count, by the recomputation it counts. One formula is the ``default`` for what a run achieved, one counts the
    model ``as_built``.
    """

    name: str
    title: str
    source: str
    text: str
    needs: Callable[[ModelShape], tuple[str, ...]]
    terms: Callable[[ModelShape, int], Mapping[str, float]]
    symbols: Mapping[str, str]
    selective: tuple[str, ...]
    full: tuple[str, ...]
    ignores: tuple[Ignorable, ...] = ()
    quotes_recompute: bool = False
    printed_as: Mapping[Recompute, str] = field(default_factory=dict)
    default: bool = False
    as_built: bool = False

    def missing(self, shape: ModelShape) -> tuple[str, ...]:
        """Glossary names of the sizes this formula needs and ``shape`` does not know."""
        return shape.missing(self.needs(shape))

    def terms_per_token(self, shape: ModelShape, seq_length: int) -> Mapping[str, float] | None:
        """Model FLOPs per token by term, at ``seq_length`` tokens; None when a size is missing."""
        return None if self.missing(shape) else self.terms(shape, seq_length)

    def model_flops_per_token(self, shape: ModelShape, seq_length: int) -> float | None:
        """FLOPs per token, forward and backward, recomputation not counted; None when a size is missing."""
        return self.hardware_flops_per_token(shape, seq_length, "none")

    def hardware_flops_per_token(self, shape: ModelShape, seq_length: int, recompute: Recompute) -> float | None:
        """FLOPs per token with the forward passes that ``recompute`` repeats; None when a size is missing."""
        terms = self.terms_per_token(shape, seq_length)
        if terms is None:
            return None
        return sum(terms.values()) + sum(terms[name] for name in self.repeated(recompute)) * FORWARD_SHARE

    def repeated(self, recompute: Recompute) -> tuple[str, ...]:
        """The terms whose forward pass runs a second time under ``recompute``."""
        return {"none": (), "selective": self.selective, "full": self.full}[recompute]

    def quoted(self, recompute: Recompute | None) -> Recompute:
        """What the formula's own figure counts of a run's ``recompute``."""
        return "full" if self.quotes_recompute and recompute == "full" else "none"


def sizes(shape: ModelShape, *names: str) -> tuple[int, ...]:
    """The sizes ``names`` of ``shape``, in that order.

    Raises:
        ValueError: one of them is unknown; ``Formula.missing`` was not asked first.
    """
    if unknown := shape.missing(names):
        raise ValueError(f"unknown sizes: {', '.join(unknown)}")
    return tuple(getattr(shape, name) for name in names)
