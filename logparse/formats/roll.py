"""ROLL, reinforcement learning, distillation, preferences, fine-tuning: ``pipeline step 4 finished``, counted from 0.

No time: the stamps of whole seconds give it, a save between two lines included. The dict of metrics on the line before has
the time of the step before it (RLVR) or none, so it is not read.

Source: alibaba/ROLL, roll/pipeline/*/*_pipeline.py and roll/utils/logging.py.
"""

from logparse.formats._base import Choice, LogFormat, Sample, SettingSentence

FORMAT = LogFormat(
    name="roll",
    title="ROLL",
    framework="ROLL",
    traces=(r"\broll[/.](?:pipeline|distributed|utils)\b",),
    pauses_inside=True,
    marker=("pipeline step ",),
    # The newest SFT pipeline prints three dots.
    head=r"\[PID \d+\] pipeline step (?P<step>\d+) finished(?:\.\.\.)?\s*$",
    pair="",
    labels={},
    required=("step",),
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=tuple(
        SettingSentence("step", f'"time/{name}"', rf'"time/(?P<generates>{name})"', first=True)
        for name in ("step_generate", "step_rollout")
    ),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "[2026-03-02 10:20:30] [rlvr_pipeline.py (840)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 4 finished",
            {"timestamp": "2026-03-02T10:20:30", "step": 4},
        ),
        Sample(
            "[2026-03-02 10:20:31] [sft_pipeline.py (240)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 5 finished...",
            {"timestamp": "2026-03-02T10:20:31", "step": 5},
        ),
    ),
)
