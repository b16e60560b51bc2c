"""Keras, tf.keras 2.x and Keras 3: the finished bar of an epoch, ``1000/1000 [=====] - 85s 85ms/step - loss: 1.2``.

``85ms/step`` is the mean of the epoch in whole milliseconds or seconds, in 2.x with the validation at its end. Where it is
printed in seconds, those of the epoch over its steps are finer; they include the first step, which the mean leaves out. In Keras 3 the
bar is ``1000/1000 ━━━━━ 85s 85ms/step``. Bars that are not full have a remaining time and are not read. A step is a batch.

Source: keras-team/keras, keras/src/utils/progbar.py; printed in pierluigiferrari/ssd_keras#344.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Sample

FORMAT = LogFormat(
    name="keras",
    title="Keras",
    framework="Keras",
    pauses_inside=True,
    rate_covers="interval",
    clock_of_epoch=True,
    marker=("s/step",),
    head=(
        r"(?:^|[\r\x08])(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) (?:\[=+\] -|━+|-) +(?P<runtime_seconds>\d+)s "
        r"(?:(?P<elapsed_time_per_iteration_ms>\d+)ms|(?P<logged_seconds_per_step>\d+)s)/step"
        rf"(?: - (?:[a-z_]*acc\w*: {NUMBER} - )?loss: (?P<loss>{NUMBER}))?"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    companions=(Companion("Epoch ", r"^Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\s*$", belongs_to="next"),),
    samples=(
        Sample(
            "Epoch 2/10\n1000/1000 [==============================] - 85s 85ms/step - loss: 1.2031 - accuracy: 0.5",
            {
                "step": 2000,
                "train_steps": 10000,
                "epoch": 2,
                "epochs": 10,
                "step_in_epoch": 1000,
                "steps_per_epoch": 1000,
                "runtime_seconds": 85.0,
                "elapsed_time_per_iteration_ms": 85.0,
                "loss": 1.2031,
            },
        ),
        Sample(
            "Epoch 1/3\n313/313 ━━━━━━━━━━━━━━━━━━━━ 626s 2s/step - accuracy: 0.4102 - loss: 1.7500 - val_loss: 1.5",
            {
                "step": 313,
                "train_steps": 939,
                "epoch": 1,
                "epochs": 3,
                "step_in_epoch": 313,
                "steps_per_epoch": 313,
                "runtime_seconds": 626.0,
                "logged_seconds_per_step": 2.0,
                "loss": 1.75,
            },
        ),
    ),
)
