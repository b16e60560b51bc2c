"""OpenRLHF's bar of an epoch: ``Train step of epoch 0:  25%|██▌| 100/400 [05:12<15:36,  3.12s/it, gpt_loss=1.03, ...]``.

Fine-tuning, reward models and DPO print it. In reinforcement learning ``Train epoch [1/1]`` is the update of a step alone;
the bar of the episodes, which has the whole step, is read where it is there. The loss on it is of another mean.

Source: OpenRLHF/OpenRLHF 0.2 to 0.9, openrlhf/trainer/sft_trainer.py and ppo_trainer.py.
"""

from logparse.formats._base import BAR_RATE, Choice, LogFormat, Sample, SettingSentence

FORMAT = LogFormat(
    name="openrlhf-train",
    title="OpenRLHF (bar of an epoch)",
    framework="OpenRLHF",
    # Under the bar of the episodes.
    beneath=1,
    rate_covers="recent",
    marker=("Train step of epoch ", "Train epoch ["),
    head=(
        r"\bTrain (?:step of epoch |epoch \[)(?P<epoch>\d+)(?:/\d+\])?:\s+\d+%\|[^|]*\| *"
        r"(?P<step_in_epoch>[1-9]\d*)/(?P<steps_per_epoch>\d+) \[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    sentences=(SettingSentence("step", "Train epoch [", r"(?P<generates>Train epoch) \[", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "Train step of epoch 1:  25%|██▌       | 100/400 [05:12<15:36,  3.12s/it, gpt_loss=1.03, lr=5e-6]",
            {
                "step": 100,
                "epoch": 1,
                "step_in_epoch": 100,
                "steps_per_epoch": 400,
                "runtime_seconds": 312.0,
                "logged_seconds_per_step": 3.12,
            },
        ),
        Sample(
            "Train epoch [1/1]:  50%|█████     | 4/8 [00:37<00:37,  9.33s/it, policy=0.01, glen=512, act_lr=5e-7]",
            {
                "step": 4,
                "epoch": 1,
                "step_in_epoch": 4,
                "steps_per_epoch": 8,
                "runtime_seconds": 37.0,
                "logged_seconds_per_step": 9.33,
            },
        ),
    ),
)
