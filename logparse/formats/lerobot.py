"""LeRobot: ``INFO 2026-03-02 10:00:00 ts/train.py:232 step:200 smpl:2K ep:3 epch:0.06 loss:0.237 grdn:0.7 lr:7.9e-05 updt_s:0.098 data_s:0.001``.

The stamps give the time. ``updt_s``, the update, and ``data_s``, the wait for data, are means of the steps since the line
before, in seconds, without saves and evaluations: they are timers, and without stamps the update is the time. From 1,000 steps on the step is rounded to thousands and a ``K``: such a line has no exact step, so it
counts as torn, and a note says why. A sample is a frame with its images.

Source: huggingface/lerobot 0.1 to 0.4, src/lerobot/utils/logging_utils.py, MetricsTracker. Printed in
unitreerobotics/unitree_lerobot#10.
"""

from logparse.formats._base import NUMBER, LogFormat, Name, Reading, Record, Sample, SettingSentence

FORMAT = LogFormat(
    name="lerobot",
    title="LeRobot (first 999 steps)",
    framework="LeRobot",
    trains_on="images",
    traces=(r"\blerobot[/.](?:scripts|common|utils|policies|datasets|configs)\b",),
    pauses_inside=True,
    rate_covers="recent",
    rate_of_passes=True,
    marker=(" smpl:",),
    # With its ``K`` a step is no number.
    head=r"\bstep:(?P<step>\d+K?) smpl:[\d.]+[KMB]? ",
    pair=rf"\b([a-z][\w/]*):({NUMBER})[KMBTQ]?(?:\s|$)",
    separator=r"\s",
    labels={
        "loss": Reading("loss"),
        "grdn": Reading("grad_norm"),
        "lr": Reading("learning_rate"),
        "updt_s": Reading("logged_seconds_per_step"),
    },
    ignored_patterns=(r".*",),
    required=("step",),
    records=(
        Record("timers", "updt_s:", rf"\b(?P<name>updt_s|data_s):(?P<max_ms>{NUMBER})(?:\s|$)", scale=1000, every=True),
    ),
    phases=("updt_s", "data_s"),
    sentences=(SettingSentence("line", "K smpl:", r"\bstep:(?P<rounded_step>\d+K) smpl:", last=True),),
    names=(Name("rounded_step", "line:rounded_step"),),
    samples=(
        Sample(
            "INFO 2026-03-02 10:20:30 ts/train.py:232 step:200 smpl:2K ep:3 epch:0.06 loss:0.237 grdn:0.722 lr:7.9e-05 "
            "updt_s:0.098 data_s:0.001",
            {
                "timestamp": "2026-03-02T10:20:30",
                "step": 200,
                "loss": 0.237,
                "grad_norm": 0.722,
                "learning_rate": 7.9e-5,
                "logged_seconds_per_step": 0.098,
            },
        ),
    ),
)
