"""What a printed formula is: a way to count FLOPs per token that some framework has printed as TFLOP/s.

Unlike ``analysis.flops.Formula`` it keeps the faults of its framework and has no terms to recompute: where a framework
counts recomputation there is one printed formula for each way of counting it.
"""

from __future__ import annotations

from collections.abc import Callable

from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass

Needs = Callable[[ModelShape], tuple[str, ...]]
Flops = Callable[[ModelShape, int], float | None]

CORE_ATTENTION_RATIO = "core_attention_ratio"


@dataclass(frozen=True)
class PrintedFormula:
    """``title`` is short, ``printed_by`` says who printed it and when, ``text`` is it in symbols (docs/formulas.md).

    ``flops`` gives FLOPs per token and may only be called when no size of ``needs`` is missing; None is a number that
    cannot be counted. ``measured_core`` is
    for a framework that prints which share of the attention matrix it computed: the FLOPs per token of the full
    matrix, not in ``flops``, to be multiplied by that share. ``accuracy`` is how far, relatively, ``flops`` may be off
    because the framework counted something that a shape does not hold.
    """

    id: str
    title: str
    printed_by: str
    text: str
    needs: Needs
    flops: Flops
    measured_core: Flops | None = None
    accuracy: float = 0.0

    def missing(self, shape: ModelShape) -> tuple[str, ...]:
        """Glossary names of the sizes this formula needs and ``shape`` does not know."""
        return shape.missing(dict.fromkeys(self.needs(shape)))

    def flops_per_token(
        self, shape: ModelShape, seq_length: int, core_attention_ratio: float | None = None
    ) -> float | None:
        """FLOPs per token as the framework counts them; None when a size, or the printed ratio, is missing."""
        if self.missing(shape):
            return None
        flops = self.flops(shape, seq_length)
        if self.measured_core is None or flops is None:
            return flops
        core = self.measured_core(shape, seq_length)
        return None if core_attention_ratio is None or core is None else flops + core_attention_ratio * core


def always(*names: str) -> Needs:
    """The same sizes for every shape."""
    return lambda _: names
