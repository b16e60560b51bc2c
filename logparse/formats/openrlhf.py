"""OpenRLHF 0.2 and later, reinforcement learning: the bar of its episodes, ``Episode [1/1]:  92%|█▏| 11/12 [03:32<00:19, ...]``.

A step is generation, rewards and training together. The bar's clock of whole seconds gives its time, or its moving mean
where the clock gives none. Other values are of parts of a step: a mixed step has no rate of tokens and no MFU.
"""

from logparse.formats._base import BAR_RATE, Choice, LogFormat, Record, Sample, SettingSentence

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
    clock_of_epoch=True,
    required=("step_in_epoch",),
    redrawn=True,
    # Since 0.9 the line of a step, with the numbers of the bar.
    records=(Record("timers", "'timing/", r"'timing/(?P<name>\w+)': (?P<max_ms>[\d.]+)", scale=1000, every=True),),
    parts={"generation": "generation", "make_experience": "log_probs", "ppo_train": "update", "broadcast": "weights"},
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
