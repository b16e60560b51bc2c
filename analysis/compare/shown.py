"""How the values of a metric are shown: in which unit, with how many digits."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.compare.verdict import Metric

# By the unit of a column: the unit that people read, what makes the one of the other, and the digits that tell runs
# apart.
READ_AS = {
    "ms": ("ms", 1.0, 1),
    "tokens/s/p": ("tokens/s/p", 1.0, 1),
    "TFLOP/s/p": ("TFLOP/s/p", 1.0, 2),
    "ratio": ("%", 100.0, 2),
    "bytes": ("GiB", 2**-30, 2),
}


@dataclass(frozen=True)
class Shown:
    """``scale`` times a value is in ``unit``; ``digits`` are its decimals."""

    unit: str
    scale: float
    digits: int

    def text(self, value: float) -> str:
        """A value of the column as people read it, without its unit."""
        return f"{value * self.scale:,.{self.digits}f}"


def shown_as(metric: Metric) -> Shown:
    """How values of ``metric`` are shown."""
    return Shown(*READ_AS[metric.unit])
