"""What is assumed of a job where neither its log nor the user says it, and where the rules of an estimate are from.

Both are in English, as the figures keep them; docs/estimates.md describes each.
"""

from __future__ import annotations

from typing import Any

ASSUMED: dict[str, Any] = {
    "micro_batch_size": 1,
    "zero_stage": 0,
    "virtual_pipeline_model_parallel_size": 1,
    "sequence_parallel": False,
    "recompute": "none",
    "precision": "bf16",
    "flash_attention": True,
    "dropout": False,
}


CHEAT_SHEET = "AICC cheat sheet for training on Ascend"
ARTICLE = "article on estimating training parameters"
NOTE_13B = "note on fitting a 13B model into 8 cards"
WEIGHTS = "weights of the architecture, counted"
ADAM = "Kingma and Ba 2015, Adam: weight, gradient and two moments, each of 4 bytes"
KORTHIKANTI = "Korthikanti et al. 2022, section 4 and table 2, by tensor"
NARAYANAN = "Narayanan et al. 2021, Efficient Large-Scale Language Model Training, section 2.2"
SHOEYBI = "Shoeybi et al. 2019, Megatron-LM, section 3; ring all-reduce sends 2 (t - 1)/t of its data"
SEQUENCE = "Korthikanti et al. 2022, section 4.2.2: the input is gathered once more for the weight gradient"
SIX_PASSES = "6 P n of the cheat sheet; the article takes 8 P n, as with full recomputation"
