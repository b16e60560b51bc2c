"""PaxML: ``[PAX STATUS] step_i: 100, training loss: 6.25``, every ``log_interval_steps`` steps.

No time: ``steps/sec: 0.975`` on a line before it is the mean of the last ten steps, or of those since the summary before,
with an evaluation between them. absl's stamp has no year and is not read.

Source: google/paxml, paxml/summary_utils.py (``SummaryHandler``) and paxml/programs.py (``_compute_steps_per_sec``).
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Sample

FORMAT = LogFormat(
    name="paxml",
    title="PaxML",
    framework="PaxML",
    traces=(r"\bpaxml[/.]|\[PAX STATUS\]",),
    pauses_inside=True,
    rate_covers="recent",
    marker=("[PAX STATUS] step_i: ",),
    head=rf"\[PAX STATUS\] step_i: (?P<step>\d+), training loss: (?P<loss>{NUMBER})",
    pair="",
    labels={},
    required=("step",),
    companions=(
        Companion("steps/sec: ", rf"\bsteps/sec: (?P<logged_steps_per_second>{NUMBER})\s*$", belongs_to="next"),
    ),
    samples=(
        Sample(
            "I0302 10:20:30.123456 140 programs.py:515] steps/sec: 0.974500\n"
            "I0302 10:20:30.223456 140 summary_utils.py:918] [PAX STATUS] step_i: 100, training loss: 6.359375",
            {
                "timestamp": "1904-03-02T10:20:30.223456",
                "step": 100,
                "loss": 6.359375,
                "logged_steps_per_second": 0.9745,
            },
        ),
    ),
)
