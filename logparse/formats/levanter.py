"""Levanter 2023 to 2026: ``Progress on:train 19.0it/70.0it rate:76.8s/it remaining:1:05:15 elapsed:31:40 postfix:loss=2.3``.

The rate is smoothed: the clock of whole seconds gives the time, the rate only where the clock gives none. From 1,000
steps on the step is rounded to three digits and a ``k``: such a line has no exact step, so it counts as torn, and a
note says why. Saves are printed with their exact step.
"""

from logparse.formats._base import NUMBER, LogFormat, Name, Reading, Sample, SettingSentence, event

FORMAT = LogFormat(
    name="levanter",
    title="Levanter (first 999 steps)",
    framework="Levanter",
    rate_covers="recent",
    marker=("on:train ",),
    # With its ``k`` a step is no number.
    head=(
        r"\bProgress on:train (?P<step>[\d.]+k?)it/[\d.]+k?it "
        r"(?:rate:(?:(?P<logged_seconds_per_step>[0-9.]+)s/it|(?P<logged_steps_per_second>[0-9.]+)it/s) )?"
    ),
    pair=rf"(?:\b|postfix:)(elapsed|loss)[:=]([\d:.]+|{NUMBER})(?:\s|$)",
    separator=r"\s",
    labels={"elapsed": Reading("runtime_seconds"), "loss": Reading("loss")},
    required=("step",),
    redrawn=True,
    records=(
        event("save starts", "checkpoint at step ", r"Saving (?:temporary )?checkpoint at step (?P<step>\d+)\.\s*$"),
        event("save ends", "Saved checkpoint to ", r"Saved checkpoint to .* for step (?P<step>\d+)"),
    ),
    sentences=(SettingSentence("bar", "kit/", r"Progress on:train (?P<rounded_step>[\d.]+k)it/", last=True),),
    names=(Name("rounded_step", "bar:rounded_step"),),
    samples=(
        Sample(
            "2026-03-01T10:02:11 - 0 - tqdm_loggable.tqdm_logging - INFO - Progress on:train 19.0it/70.0it "
            "rate:76.8s/it remaining:1:05:15 elapsed:31:40 postfix:loss=2.345",
            {
                "timestamp": "2026-03-01T10:02:11",
                "step": 19,
                "runtime_seconds": 1900.0,
                "logged_seconds_per_step": 76.8,
                "loss": 2.345,
            },
        ),
        Sample(
            "Progress on:train 2.00it/1.20kit rate:1.5it/s remaining:13:20 elapsed:00:01",
            {"step": 2, "runtime_seconds": 1.0, "logged_steps_per_second": 1.5},
        ),
    ),
)
