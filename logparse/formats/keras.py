"""Keras, tf.keras 2.x and Keras 3: the finished bar of an epoch, ``1000/1000 [=====] - 85s 85ms/step - loss: 1.2``.

``85ms/step`` is the mean of the epoch in whole microseconds, milliseconds or seconds, in 2.x with the validation at its end. Where it is
printed in seconds, those of the epoch over its steps are finer; they include the first step, which the mean leaves out. In Keras 3 the
bar is ``1000/1000 ━━━━━ 85s 85ms/step``. Bars that are not full have a remaining time and are not read. A step is a batch; before Keras
2.4, on arrays (``Train on N samples``), it is a sample, which tf.keras 2.0 and 2.1 print as ``70us/sample``.

Source: keras-team/keras, keras/src/utils/progbar.py; printed in pierluigiferrari/ssd_keras#344;
2.2 and tf.keras 2.1, tensorflow/python/keras/utils/generic_utils.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample

FORMAT = LogFormat(
    name="keras",
    title="Keras",
    framework="Keras",
    pauses_inside=True,
    rate_covers="interval",
    clock_of_epoch=True,
    marker=("s/step", "us/sample"),
    head=(
        r"(?:^|[\r\x08])(?P<step_in_epoch>\d+)/(?P<steps_per_epoch>\d+) (?:\[=+\] -|━+|-) +(?P<runtime_seconds>\d+)s (?:- )?"
        r"(?:(?:(?P<elapsed_time_per_iteration_ms>\d+)m|(?P<logged_seconds_per_step>\d+))s/step"
        rf"(?: - (?:[a-z_]*acc\w*: {NUMBER} - )?loss: (?P<loss>{NUMBER}))?)?"
    ),
    # What follows the clock where the time is in microseconds.
    pair=rf"\b(?:(?P<label>loss): (?P<value>{NUMBER})|(?P<number>\d+)(?P<unit>us)/s(?:tep|ample))(?: - |\s*$)",
    separator=" - ",
    labels={"us": Reading("elapsed_time_per_iteration_ms", scale=0.001), "loss": Reading("loss")},
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
        Sample(
            "Epoch 2/4\n500/500 - 90s - 180ms/step - accuracy: 0.5 - loss: 2.25",
            {
                "step": 1000,
                "train_steps": 2000,
                "epoch": 2,
                "epochs": 4,
                "step_in_epoch": 500,
                "steps_per_epoch": 500,
                "runtime_seconds": 90.0,
                "elapsed_time_per_iteration_ms": 180.0,
                "loss": 2.25,
            },
        ),
        Sample(
            "Epoch 2/5\n50000/50000 [==============================] - 35s 709us/step - loss: 0.0625 - acc: 0.9797",
            {
                "step": 100000,
                "train_steps": 250000,
                "epoch": 2,
                "epochs": 5,
                "step_in_epoch": 50000,
                "steps_per_epoch": 50000,
                "runtime_seconds": 35.0,
                "elapsed_time_per_iteration_ms": 0.709,
                "loss": 0.0625,
            },
        ),
    ),
)
