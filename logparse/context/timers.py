"""The names of timers that several trainers print, by what they time."""

# Megatron's timers of a save, by age, and of an evaluation (megatron/training/training.py: around it, and within).
# Those of verl and NeMo-RL are always printed with the step that holds them.
WITHIN_STEP = ("save_checkpoint", "checkpointing", "testing", "validation")
SAVE_TIMERS = ("save-checkpoint", "save checkpoint", "save-checkpoint-non-persistent", *WITHIN_STEP[:2])
# The Hugging Face Trainer's of an evaluation is in its dict.
EVALUATION_TIMERS = ("evaluate", "eval-time", "eval_runtime", *WITHIN_STEP[2:])
# Timers of a step: a block with one of them covers the interval before its step line.
STEP_TIMERS = ("forward-backward", "forward-compute", "backward-compute", "optimizer", "forward", "backward")
