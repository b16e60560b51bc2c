"""What the Trainer of Lightning prints of its settings before the first step.

Source: Lightning-AI/pytorch-lightning, fabric/utilities/distributed.py and trainer/connectors/accelerator_connector.py.
"""

from __future__ import annotations

from logparse.formats._base import Choice, Name, SettingSentence

TRAINER = (
    SettingSentence("trainer", "distributed processes registered", r"Starting with (?P<processes>\d+) processes"),
    SettingSentence("trainer", "Automatic Mixed Precision", r"Using (?P<precision>\w+) Automatic Mixed Precision"),
)
TRAINER_NAMES = (Name("world_size", "trainer:processes"),)
TRAINER_CHOICES = (
    Choice("precision", "bf16", {"trainer:precision": "bfloat16"}),
    Choice("precision", "fp16", {"trainer:precision": "16bit|float16"}),
)
