"""The formulas that frameworks have printed as TFLOP/s, by id: what a log's number may mean.

Comes in: a model shape. Goes out: FLOPs per token as that framework counted them, faults included. The formulas that
this project computes with are in ``analysis.flops``. To add one, append it to one of the three tuples.
"""

from __future__ import annotations

from analysis.flops.printed._gpt import GPT_FORMULAS
from analysis.flops.printed._megatron import MEGATRON_FORMULAS
from analysis.flops.printed._parameters import PARAMETER_FORMULAS
from analysis.flops.printed._printed_formula import CORE_ATTENTION_RATIO, PrintedFormula

__all__ = ["CORE_ATTENTION_RATIO", "PRINTED_FORMULAS", "PrintedFormula"]

# In this order they are listed, and the first of several that give the same number is named first.
PRINTED_FORMULAS = {f.id: f for f in (*GPT_FORMULAS, *MEGATRON_FORMULAS, *PARAMETER_FORMULAS)}
