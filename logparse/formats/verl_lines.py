"""verl 0.6 and later, one key a line: ``step:12``, then ``- actor/pg_loss:0.05`` and the others of the step.

The values are those of ``verl``, whose console prints them all on one line.
"""

from logparse.formats._base import LogFormat, PairLines, Sample
from logparse.formats.verl import FORMAT as ONE_LINE
from logparse.formats.verl import VALUE

FORMAT = LogFormat(
    name="verl-lines",
    title="verl (one key a line)",
    framework="verl",
    log_of="verl",
    pauses_inside=True,
    marker=("step:",),
    head=r"\bstep:(?P<step>\d+)\s*$",
    pair="",
    pair_lines=PairLines(
        marker=("- actor/", "- critic/", "- perf/", "- timing_s/", "- training/", "- train/"),
        pair=rf"^(?:\([^)]*\))?\s*- ([^\s:]+):{VALUE}\s*$",
    ),
    labels=ONE_LINE.labels,
    ignored_patterns=ONE_LINE.ignored_patterns,
    required=("step",),
    phases=ONE_LINE.phases,
    parts=ONE_LINE.parts,
    companions=tuple(c for c in ONE_LINE.companions if c.marker.startswith("T")),
    **ONE_LINE.of_the_run,
    samples=(
        Sample(
            "(TaskRunner pid=1234, ip=10.0.0.3) Total training steps: 700\n"
            "Training Progress:   2%|▏         | 12/700 [18:10<19:48:32, 102.17s/it]\n"
            "(TaskRunner pid=1234, ip=10.0.0.3) step:12\n - actor/pg_loss:0.0125\n - perf/mfu/actor:0.25\n"
            " - actor/lr:1e-06\n - timing_s/gen:24.5\n - timing_s/step:93.5\n - perf/throughput:2932.5",
            {
                "step": 12,
                "train_steps": 700,
                "loss": 0.0125,
                "logged_mfu": 0.25,
                "learning_rate": 1e-06,
                "elapsed_time_per_iteration_ms": 93500.0,
                "logged_tokens_per_second_per_device": 2932.5,
            },
        ),
    ),
)
