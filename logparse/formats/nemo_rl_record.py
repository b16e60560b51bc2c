"""Records of NeMo-RL without the line of their step, as people paste them: results, times and rates.

The steps are counted. Everything else is that of ``nemo_rl``.
"""

from logparse.formats._base import LogFormat, Sample
from logparse.formats.nemo_rl import FORMAT as WHOLE

FORMAT = LogFormat(
    name="nemo-rl-record",
    title="NeMo-RL (records without their step)",
    framework="NeMo-RL",
    log_of="nemo-rl",
    beneath=1,
    pauses_inside=True,
    marker=("Total step time: ",),
    head=r"• (?:Total step time: )",
    pair="",
    pair_lines=WHOLE.pair_lines,
    labels=WHOLE.labels,
    counted=True,
    required=("step",),
    parts=WHOLE.parts,
    **WHOLE.of_the_run,
    samples=(
        Sample(
            "  • Total step time: 35.75s\n  • policy_training: 10.97s (30.7%)\n    - E2E (Tokens/sec/gpu): 1073.5",
            {"step": 1, "elapsed_time_per_iteration_ms": 35750.0, "logged_tokens_per_second_per_device": 1073.5},
        ),
    ),
)
