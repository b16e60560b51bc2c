"""TensorFlow's model garden: ``train | step:    400 | steps/sec:    2.5 | output: {...}`` of Orbit, and Keras' TimeHistory.

Orbit prints the rate of the steps since the line before, with one decimal, and each line twice: with a stamp and
without. ``TimeHistory: 35.2 seconds, 727.0 examples/second between steps 0 and 100`` is of all devices.

Source: tensorflow/models 2.x, orbit/controller.py, and official/utils/misc/keras_utils.py.
"""

from logparse.formats._base import NUMBER, LogFormat, Sample

FORMAT = LogFormat(
    name="tf-model-garden",
    title="TensorFlow model garden (Orbit, TimeHistory)",
    framework="TensorFlow model garden",
    # The stamps are finer than one decimal.
    rate_covers="recent",
    marker=("train | step: ", "TimeHistory: "),
    head=(
        rf"\b(?:train \| |TimeHistory: [\d.]+ seconds, (?P<logged_samples_per_second>{NUMBER}) examples/second between )"
        r"step(?:s \d+ and|:) +(?P<step>\d+)"
        rf"(?: \| steps/sec: +(?P<logged_steps_per_second>{NUMBER}) \|)?"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    samples=(
        Sample(
            "I0302 10:20:30.123456 140 controller.py:282] train | step:    400 | steps/sec:    2.5 | output: \n"
            "    {'learning_rate': 0.0125, 'training_loss': 2.25}",
            {"timestamp": "1904-03-02T10:20:30.123456", "step": 400, "logged_steps_per_second": 2.5},
        ),
        Sample(
            "I0302 10:20:30.123456 140 keras_utils.py:148] TimeHistory: 35.25 seconds, 726.25 examples/second "
            "between steps 0 and 100",
            {"timestamp": "1904-03-02T10:20:30.123456", "step": 100, "logged_samples_per_second": 726.25},
        ),
    ),
)
