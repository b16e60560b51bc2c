"""AReaL: ``Epoch 1/10 Step 3/58 Train step 3/580 done.``, then a table of values, four pairs in a row.

No time: the stamps give it. The phases of a step are timers, ``timeperf/rollout``, in seconds. Epochs, steps of an epoch and
train steps count from 1.

Source: inclusionAI/AReaL, areal/utils/stats_logger.py, areal/utils/logging.py and areal/utils/stats_tracker.py.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Record, Sample, SettingSentence

FORMAT = LogFormat(
    name="areal",
    title="AReaL",
    framework="AReaL",
    traces=(r"\bareal[/.](?:utils|engine|trainer|api|infra|workflow|experimental)\b",),
    pauses_inside=True,
    marker=(" Train step ",),
    head=(
        r"\bEpoch (?P<epoch>\d+)/(?P<epochs>\d+) Step (?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) "
        r"Train step (?P<step>\d+)/(?P<train_steps>\d+) done\."
    ),
    pair="",
    labels={},
    required=("step",),
    records=(
        Record(
            "timers",
            "timeperf/",
            rf"timeperf/(?P<name>\w+) +│ +(?P<max_ms>{NUMBER}) ",
            scale=1000,
            every=True,
        ),
    ),
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "timeperf/rollout", r"timeperf/(?P<generates>rollout)", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "(AReaL) 20260302-10:20:30.125 StatsLogger INFO: Epoch 1/10 Step 3/58 Train step 3/580 done.",
            {
                "timestamp": "2026-03-02T10:20:30.125000",
                "epoch": 1,
                "epochs": 10,
                "step_in_epoch": 3,
                "steps_per_epoch": 58,
                "step": 3,
                "train_steps": 580,
            },
        ),
    ),
)
