"""What training keeps per parameter: weights, gradients, optimizer state, and what ZeRO leaves of it on one device.

Comes in: parameters, a ZeRO stage and degree. Goes out: bytes. GB are 1e9 bytes wherever they are shown.
"""

from __future__ import annotations

from analysis.estimate.assumptions import ADAM, ARTICLE, CHEAT_SHEET, NOTE_13B
from analysis.estimate.worked_figure import Figure, Number, work_out
from logparse.light_dataclass import dataclass, replace


@dataclass(frozen=True)
class StateBytes:
    """Bytes per parameter. ``optimizer`` holds the fp32 copy of the weights and the two moments of Adam."""

    weights: int
    gradients: int
    optimizer: int

    def per_parameter(self, zero: int, degree: int) -> float:
        """Bytes per parameter on one of ``degree`` data-parallel ranks."""
        kept, shared = self._split(zero)
        return kept + shared / degree

    def formula(self, zero: int) -> str:
        """The same in numbers, for ``z`` ranks; parts that are not kept or not shared out are left away."""
        kept, shared = self._split(zero)
        return " + ".join([*([str(kept)] if kept else []), *([f"{shared} / z"] if shared else [])])

    def _split(self, zero: int) -> tuple[int, int]:
        parts = (self.weights, self.gradients, self.optimizer)
        return sum(parts[: 3 - zero]), sum(parts[3 - zero :])


# Half-precision weights, fp32 main gradients, fp32 master weights and two moments: Megatron-LM with bf16.
MEGATRON = StateBytes(weights=2, gradients=4, optimizer=12)
# The same with a half-precision gradient in addition to the fp32 one.
MIXED = StateBytes(weights=2, gradients=6, optimizer=12)
# Full precision needs no second copy of the weights.
SINGLE = StateBytes(weights=4, gradients=4, optimizer=8)


def state_bytes(dtype: str) -> StateBytes:
    """The bytes per parameter that a framework of Megatron's kind keeps when it trains in ``dtype``."""
    return SINGLE if dtype in ("fp32", "tf32") else MEGATRON


# One row per rule: name, formula in P, source.
_Rule = tuple[str, str, str]
MIXED_RULES: tuple[_Rule, ...] = (
    ("training_state_20", "((2 + 4) + (2 + 4) + (4 + 4)) * P", CHEAT_SHEET),
    ("training_state_18", "(2 + 4 + 4 + 4 + 4) * P", NOTE_13B),
)
SINGLE_RULES: tuple[_Rule, ...] = (("training_state_16", "(4 + 4 + 4 + 4) * P", ADAM),)


def state_figures(parameters: Number | None, dtype: str = "bf16") -> tuple[Figure, ...]:
    """Weights on disk, memory for inference, and the whole training state by each rule, all devices together.

    The rules of the sources are for mixed precision; in fp32 there is one number for each weight, gradient and moment.
    """
    single = state_bytes(dtype) == SINGLE
    bits, formula = (32, "4 * P") if single else (16, "2 * P")
    on_disk = work_out("weights_on_disk", "bytes", formula, CHEAT_SHEET, P=parameters)
    rules = (
        ("inference_memory", "1.2 * P * 2", ARTICLE),
        ("inference_memory_fp32", "1.2 * P * 4", ARTICLE),
        *(SINGLE_RULES if single else MIXED_RULES),
    )
    return (
        replace(on_disk, label=f"weights_on_disk_{bits}_bit"),
        *(work_out(name, "bytes", formula, source, P=parameters) for name, formula, source in rules),
    )


def replica_figure(parameters: Number | None, memory_gb: float | None, dtype: str = "bf16") -> Figure:
    """Devices that hold the training state of one replica, activations not counted."""
    each = 16 if state_bytes(dtype) == SINGLE else 20
    formula = f"ceil({each} * P / (memory * 1e9))"
    return work_out("devices_for_state", "devices", formula, ARTICLE, P=parameters, memory=memory_gb)
