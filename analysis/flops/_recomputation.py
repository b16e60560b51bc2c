"""What of the forward pass a step runs a second time, as a value: shares of the layers, and parts of the others.

Comes in: what a run's settings say. Goes out: what ``Formula`` needs to count it. No FLOPs here.
"""

from __future__ import annotations

from typing import Literal

from logparse.light_dataclass import dataclass

Recompute = Literal["none", "selective", "full"]

CORE_ATTENTION = "core_attn"
# Parts without a matrix product, by the names of Megatron-LM (--recompute-modules): no formula counts them.
ELEMENTWISE = frozenset({"moe_act", "layernorm", "gdn_norm_out"})
# Parts that hold matrix products, as Megatron-LM megatron/core/transformer/transformer_config.py names them.
PRODUCTS = frozenset({CORE_ATTENTION, "mlp", "moe", "shared_experts", "mla_up_proj"})


@dataclass(frozen=True)
class Recomputation:
    """``layers`` is the share of the layers that run again whole, ``depths`` that of multi-token prediction.

    ``modules`` are the parts that run again in the other layers, those of PRODUCTS.
    """

    layers: float = 0.0
    depths: float = 0.0
    modules: frozenset[str] = frozenset()

    @property
    def whole(self) -> Recomputation:
        """The layers alone, without parts of the others."""
        return Recomputation(self.layers, self.depths)


NOTHING = Recomputation()
EVERYTHING = Recomputation(1.0, 1.0)
WORDS: dict[Recompute, Recomputation] = {
    "none": NOTHING,
    "selective": Recomputation(modules=frozenset({CORE_ATTENTION})),
    "full": EVERYTHING,
}


@dataclass(frozen=True)
class Recomputed:
    """Between which two ends the recomputation of a run lies; ``setting`` is the one that is not understood, if any."""

    least: Recomputation
    most: Recomputation
    setting: str | None = None

    @classmethod
    def exactly(cls, what: Recomputation) -> Recomputed:
        """A recomputation that is known."""
        return cls(what, what)

    @property
    def known(self) -> Recomputation | None:
        """The recomputation; None where it is a range."""
        return self.least if self.least == self.most else None
