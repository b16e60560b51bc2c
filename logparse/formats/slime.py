"""slime and miles, reinforcement learning: ``perf 2: {'perf/train_wait_time': 11.3, 'perf/actor_train_time': 1.0, 'perf/step_time': 14.2}``.

A step is a rollout and all updates made of it, counted from 0; its phases are timers. Losses are on the lines ``step N:``,
which count updates, and are not read. A terminal wraps the line: the time of the step is also read on the lines
after it, unless it is torn in two.

Source: THUDM/slime, slime/observability/train_metric_utils.py. Printed in THUDM/slime#1102.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, PairLines, Reading, Record, Sample, SettingSentence

FORMAT = LogFormat(
    name="slime",
    title="slime, miles",
    framework="slime",
    traces=(r"\bslime[/.](?:ray|backends|utils|rollout)\b|\bmiles[/.](?:ray|backends|utils|rollout)\b",),
    pauses_inside=False,
    rate_covers="step",
    marker=(": {'perf/",),
    head=r"\bperf (?P<step>\d+): \{",
    pair=rf"'perf/(\w+)': ({NUMBER})(?:, |\}})",
    separator=r"[,}]",
    pair_lines=PairLines(marker=("'perf/step_time'",), pair=rf"'perf/(step_time)': ({NUMBER})(?:, |\}})"),
    labels={
        "step_time": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "actor_train_tflops": Reading("logged_tflops_per_second_per_device"),
    },
    ignored_patterns=(r".*",),
    records=(Record("timers", "_time': ", r"'perf/(?P<name>\w+_time)': (?P<max_ms>[\d.]+)", scale=1000, every=True),),
    # The actor waits for the generation.
    parts={"train_wait_time": "generation", "actor_train_time": "update"},
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "'perf/step_time'", r"'perf/(?P<generates>step_time)'", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "(MegatronTrainRayActor pid=386) [2026-01-05 12:20:29] train_metric_utils.py:44 - perf 2: "
            "{'perf/train_wait_time': 11.25, 'perf/actor_train_time': 1.5, 'perf/actor_train_tflops': 3.75, "
            "'perf/step_time': 14.25, 'perf/wait_time_ratio': 0.789}",
            {
                "timestamp": "2026-01-05T12:20:29",
                "step": 2,
                "elapsed_time_per_iteration_ms": 14250.0,
                "logged_tflops_per_second_per_device": 3.75,
            },
        ),
    ),
)
