"""torchtune's console, where nothing else logs to it: its bar, ``1|3|Loss: 1.94:   0%| | 3/1617 [00:21<3:04:47, 6.87s/it]``.

The epoch and the step since the start come first. The bar's clock of whole seconds gives the time and begins again with
each epoch; where it gives none, the moving mean of the bar does.
"""

from logparse.formats._base import BAR_RATE, NUMBER, LogFormat, Sample
from logparse.formats.torchtune import FORMAT as LINES

FORMAT = LogFormat(
    name="torchtune-bar",
    title="torchtune (progress bar)",
    framework="torchtune",
    rate_covers="recent",
    marker=("|Loss: ",),
    head=(
        rf"\b(?P<epoch>\d+)\|(?P<step>\d+)\|Loss: (?P<loss>{NUMBER}): +\d+%\|[^|]*\| *(?P<step_in_epoch>\d+)/"
        r"(?P<steps_per_epoch>\d+) \[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE
    ),
    pair="",
    labels={},
    clock_of_epoch=True,
    required=("step",),
    redrawn=True,
    **LINES.of_the_run,
    samples=(
        Sample(
            "1|3|Loss: 1.943998098373413:   0%|                    | 3/1617 [00:21<3:04:47,  6.87s/it]",
            {
                "step": 3,
                "epoch": 1,
                "step_in_epoch": 3,
                "steps_per_epoch": 1617,
                "loss": 1.943998098373413,
                "runtime_seconds": 21.0,
                "logged_seconds_per_step": 6.87,
            },
        ),
    ),
)
