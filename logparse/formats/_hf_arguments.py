"""The arguments of the Hugging Face Trainer as it prints them: ``TrainingArguments(`` and a line ``bf16=True,`` for each.

ms-swift prints its own class so, with the same names. Source: transformers training_args.py, TrainingArguments.__str__.
"""

from __future__ import annotations

from logparse.formats._base import Block, Choice, Name, SettingSentence

HF_ARGUMENTS = Block(
    kind="training arguments",
    marker="Arguments(",
    start=r"\b(?:\w*Train\w*|Sft|RLHF|Pt)Arguments\(\s*$",
    end=r"^\s*\)\s*$",
    entry=r"^\s*(\w+)=(.*?),?\s*$",
)
# What LLaMA-Factory prints of both, whose arguments do not show them.
HF_ARGUMENT_SENTENCES = (
    SettingSentence("loader", "compute dtype: ", r"compute dtype: torch\.(?P<compute_dtype>\w+)"),
    SettingSentence("loader", "radient checkpointing enabled", r"(?P<checkpointing>[gG]radient checkpointing enabled)"),
)
_CHECKPOINTING = "training arguments:gradient_checkpointing"
HF_ARGUMENT_NAMES = (Name("micro_batch_size", "training arguments:per_device_train_batch_size"),)
HF_ARGUMENT_CHOICES = (
    Choice("precision", "bf16", {"training arguments:bf16": "True"}),
    Choice("precision", "fp16", {"training arguments:fp16": "True"}),
    Choice("precision", "bf16", {"loader:compute_dtype": "bfloat16"}),
    Choice("precision", "fp16", {"loader:compute_dtype": "float16"}),
    # A layer of the model is recomputed whole; FSDP has a setting of its own for the same.
    Choice("recompute", "full", {"loader:checkpointing": ".+"}),
    Choice("recompute", "full", {_CHECKPOINTING: "True"}),
    Choice("recompute", "full", {"training arguments:fsdp_config": ".*'activation_checkpointing': True.*"}),
    Choice("recompute", "none", {_CHECKPOINTING: "False"}),
)
