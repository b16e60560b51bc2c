"""llama-cookbook (llama-recipes): ``Training Epoch: 3/3, step 56/57 completed (loss: 0.68): 100%|██| 57/57 [04:25<00:00,  4.65s/it]``.

The bar counts updates of the weights, the words before it passes. Its clock of whole seconds begins again with each epoch
and gives the time, or its moving mean where the clock gives none.

Source: meta-llama/llama-recipes, src/llama_cookbook/utils/train_utils.py.
"""

from logparse.formats._base import BAR_RATE, NUMBER, LogFormat, Sample, evaluation
from logparse.formats._peft import PEFT_CHOICES, PEFT_NAMES, PEFT_SENTENCES

FORMAT = LogFormat(
    name="llama-cookbook",
    title="llama-cookbook, llama-recipes",
    framework="llama-cookbook",
    traces=(r"\bllama_(?:recipes|cookbook)[/.]",),
    rate_covers="recent",
    marker=("Training Epoch: ",),
    head=(
        rf"\bTraining Epoch: (?P<epoch>\d+)/(?P<epochs>\d+), step \d+/\d+ completed \(loss: (?P<loss>{NUMBER})\): +\d+%\|[^|\r]*\| *"
        r"(?P<step_in_epoch>[1-9]\d*)/(?P<steps_per_epoch>\d+) \[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    sentences=PEFT_SENTENCES,
    names=PEFT_NAMES,
    choices=PEFT_CHOICES,
    records=(evaluation("eval_epoch_loss=", rf"eval_epoch_loss=tensor\((?P<loss>{NUMBER})", "eval"),),
    samples=(
        Sample(
            "Training Epoch: 3/3, step 56/57 completed (loss: 0.68041): 100%|██████████| 57/57 [04:25<00:00,  4.65s/it]",
            {
                "step": 171,
                "train_steps": 171,
                "epoch": 3,
                "epochs": 3,
                "step_in_epoch": 57,
                "steps_per_epoch": 57,
                "loss": 0.68041,
                "runtime_seconds": 265.0,
                "logged_seconds_per_step": 4.65,
            },
        ),
    ),
)
