"""Numbers that the sources worked out by hand, and what this installation computes for the same inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from analysis.estimate.activations import rule_figures
from analysis.estimate.assumptions import ARTICLE, CHEAT_SHEET, NOTE_13B
from analysis.estimate.device_layout import Layout, Training
from analysis.estimate.parameter_figures import parameter_figures
from analysis.estimate.stages import rule_of_thumb_stages
from analysis.estimate.state import state_figures
from analysis.estimate.work import Work, devices_for, training_time
from analysis.estimate.worked_figure import Figure, Number
from analysis.flops import Recompute, default_formula
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass

_LLAMA2_7B = ModelShape(num_layers=32, hidden_size=4096, padded_vocab_size=32000)
_GPT3 = ModelShape(num_layers=96, hidden_size=12288, num_attention_heads=96)
_BILLION_13, _BILLION_175, _TOKENS, _THIRTY_DAYS = 13_000_000_000, 175_000_000_000, 300_000_000_000, 2_592_000


@dataclass(frozen=True)
class WorkedNumber:
    """A ``value`` of the ``source``, and how this program computes it; ``digits`` are those that the source prints."""

    name: str
    value: float
    source: str
    compute: Callable[[], Number | None]
    digits: int = 12

    def agrees(self, computed: Number | None) -> bool:
        """Whether ``computed`` is the value, to the digits of the source."""
        return computed is not None and math.isclose(computed, self.value, rel_tol=10.0 ** (1 - self.digits))


def _of(figures: Iterable[Figure], name: str) -> Number | None:
    return next(figure.value for figure in figures if figure.name == name)


def _flops(recompute: Recompute) -> float:
    tokens = 256 * 4096
    formula = default_formula()
    per_token = formula.hardware_flops_per_token(_LLAMA2_7B, 4096, recompute)
    return float(per_token or 0.0) * tokens


WORKED_NUMBERS = (
    WorkedNumber("flops_of_a_step", 4.790627137801421e16, CHEAT_SHEET, lambda: _flops("none"), 15),
    WorkedNumber(
        "tflops_with_recomputation", 798.4378563002368, CHEAT_SHEET, lambda: _flops("full") / 8 / 10 / 1e12, 15
    ),
    WorkedNumber(
        "parameters",
        6_442_450_944,
        CHEAT_SHEET,
        lambda: _of(parameter_figures(_LLAMA2_7B, None, None), "parameters_short"),
    ),
    WorkedNumber(
        "parameters_of_gpt3",
        173_946_175_488,
        CHEAT_SHEET,
        lambda: _of(parameter_figures(_GPT3, None, None), "parameters_short"),
    ),
    WorkedNumber("training_state", 260e9, CHEAT_SHEET, lambda: _of(state_figures(_BILLION_13), "training_state_20")),
    WorkedNumber("megatron_state", 234e9, NOTE_13B, lambda: _of(state_figures(_BILLION_13), "training_state_18")),
    WorkedNumber(
        "activations",
        275.414777856e9,
        CHEAT_SHEET,
        lambda: _of(rule_figures(_GPT3, Training(2048, 1)), "activations_stack"),
    ),
    WorkedNumber("memory_of_a_stage", 92.5e9, NOTE_13B, lambda: rule_of_thumb_stages(13e9, 34e9, Layout(pp=4))[0]),
    WorkedNumber(
        "training_time",
        2_921_340.81,
        ARTICLE,
        lambda: training_time(Work(_BILLION_175, _TOKENS, 1024, 312, 0.45, "full")).value,
        9,
    ),
    WorkedNumber(
        "devices_for_a_deadline",
        1155,
        ARTICLE,
        lambda: devices_for(Work(_BILLION_175, _TOKENS, None, 312, 0.45, "full"), _THIRTY_DAYS).value,
    ),
)
