"""What is assumed of a job where neither its log nor the user says it."""

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
