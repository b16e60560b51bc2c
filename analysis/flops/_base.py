"""What a FLOPs formula is: a few named terms per token, and which of them recomputation runs again.

Comes in: a model shape and a sequence length. Goes out: floating-point operations per trained token. Tokens, seconds,
devices and peaks are not known here. A multiply and an add are two operations in every formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from analysis.model.shape import ModelShape

Recompute = Literal["none", "selective", "full"]

# A matrix product costs as much forward as for each of the two gradients of the backward pass: three equal parts.
FORWARD_SHARE = 1 / 3


@dataclass(frozen=True)
class Formula:
    """One published way to count the operations of training; ``text`` is the model FLOPs per token in symbols.

    ``needs`` names the sizes a given shape must know, which depends on the kind of model. ``terms`` gives the FLOPs per
    token, forward and backward without recomputation, and may only be called when none of them is missing.
    ``selective`` and ``full`` name the terms whose forward pass runs a second time under that recomputation.
    """

    name: str
    title: str
    source: str
    text: str
    needs: Callable[[ModelShape], tuple[str, ...]]
    terms: Callable[[ModelShape, int], Mapping[str, float]]
    selective: tuple[str, ...]
    full: tuple[str, ...]

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
        again = {"none": (), "selective": self.selective, "full": self.full}[recompute]
        return sum(terms.values()) + sum(terms[name] for name in again) * FORWARD_SHARE


def sizes(shape: ModelShape, *names: str) -> tuple[int, ...]:
    """The sizes ``names`` of ``shape``, in that order.

    Raises:
        ValueError: one of them is unknown; ``Formula.missing`` was not asked first.
    """
    if unknown := shape.missing(names):
        raise ValueError(f"unknown sizes: {', '.join(unknown)}")
    return tuple(getattr(shape, name) for name in names)
