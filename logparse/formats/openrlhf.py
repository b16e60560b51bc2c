"""OpenRLHF 0.2 and later, reinforcement learning: the bar of its episodes, ``Episode [1/1]:  92%|█▏| 11/12 [03:32<00:19, ...]``.

A step is generation, rewards and training together; the bar's clock of whole seconds gives its time, and its moving mean where that tells none. What else is printed is
of parts of a step: no rate of tokens is made, and no MFU of a mixed step.
"""

from logparse.formats._base import BAR_RATE, Choice, LogFormat, Sample, SettingSentence

FORMAT = LogFormat(
    name="openrlhf",
    title="OpenRLHF (bar of episodes)",
    framework="OpenRLHF",
    rate_covers="recent",
    marker=("Episode [",),
    head=(
        r"\bEpisode \[(?P<epoch>\d+)/(?P<epochs>\d+)\]:\s+\d+%\|[^|]*\| *"
        r"(?P<step_in_epoch>[1-9]\d*)/(?P<steps_per_epoch>\d+) \[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE
    ),
    pair="",
    labels={},
    required=("step_in_epoch",),
    redrawn=True,
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "Episode [", r"(?P<generates>Episode) \[", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "Episode [1/2]:  92%|█████████▏| 11/12 [03:32<00:19, 19.50s/it]",
            {
                "step": 11,
                "train_steps": 24,
                "epoch": 1,
                "epochs": 2,
                "step_in_epoch": 11,
                "steps_per_epoch": 12,
                "runtime_seconds": 212.0,
                "logged_seconds_per_step": 19.5,
            },
        ),
    ),
)
