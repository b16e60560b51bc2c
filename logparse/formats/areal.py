"""AReaL: ``Epoch 1/10 Step 3/58 Train step 3/580 done.``, then a table of values, four pairs in a row.

No time: the stamps give it. The phases of a step are timers, ``timeperf/rollout``, in seconds. Epochs, steps of an epoch and
train steps count from 1. AReaL 0.1 to 0.3, as ReaLHF before it, prints the seconds of each step: ``Epoch 1/1 step 2/19 (global
step 2) finishes. ... #End to end# execution time: *2405.7*s``; ReaLHF leaves them out.

Source: inclusionAI/AReaL, areal/utils/stats_logger.py, areal/utils/logging.py and areal/utils/stats_tracker.py; its 0.1,
realhf/system/master_worker.py. Printed in examples/README.md of 0.1, a newer line in inclusionAI/AReaL#382.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Record, Sample, SettingSentence

FORMAT = LogFormat(
    name="areal",
    title="AReaL",
    framework="AReaL",
    traces=(r"\bareal[/.](?:utils|engine|trainer|api|infra|workflow|experimental)\b",),
    pauses_inside=True,
    rate_covers="step",
    marker=(" Train step ", " (global step "),
    head=(
        r"\bEpoch (?P<epoch>\d+)/(?P<epochs>\d+) [Ss]tep (?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) "
        r"(?:Train step |\(global step )(?P<step>\d+)(?:/(?P<train_steps>\d+) done\.|\) finishes\.)"
        r"(?:.*#End to end# execution time: \*(?P<logged_seconds_per_step>[\d.]+)\*s)?"
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
    parts={
        "rollout": "generation",
        "recompute_logp": "log_probs",
        "ref_logp": "reference",
        "compute_advantage": "advantages",
        "compute_advantages": "advantages",
        "train_step": "update",
        "update_weights": "weights",
    },
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(
        SettingSentence("step", "timeperf/rollout", r"timeperf/(?P<generates>rollout)", first=True),
        # What has a reward was generated.
        SettingSentence("step", "'task_reward': ", r"'(?P<generates>task_reward)': ", first=True),
    ),
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
        Sample(
            "(master_worker/0 pid=4242) 20260302-10:20:30.125 master worker INFO: Epoch 2/3 step 1/20 (global step 21) finishes. "
            "Average #tokens per batch is 100000. #End to end# execution time: *2100.125*s. Total time consumption: 44000.5s.",
            {
                "timestamp": "2026-03-02T10:20:30.125000",
                "epoch": 2,
                "epochs": 3,
                "step_in_epoch": 1,
                "steps_per_epoch": 20,
                "step": 21,
                "logged_seconds_per_step": 2100.125,
            },
        ),
    ),
)
