"""TensorFlow's Estimator, TF-Slim and the object detection API: ``INFO:tensorflow:loss = 2.31, step = 200 (8.123 sec)``.

The seconds are of all steps since the line before; ``global_step/sec`` in front of the line gives their mean, evaluation and
saves included. Slim prints ``global step 100: loss = 2.31 (0.345 sec/step)`` of the last step alone, the detection API ``Step 100
per-step time 0.345s``, a mean of the last call, which is of 100 steps unless configured.

Source: tensorflow 1.x and 2.x, python/training/basic_session_run_hooks.py, LoggingTensorHook and StepCounterHook; tf-slim 1.1,
tf_slim/learning.py, train_step; tensorflow/models 2020 to 2024, research/object_detection/model_lib_v2.py, train_loop.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Sample, SettingSentence, event

FORMAT = LogFormat(
    name="tf-estimator",
    title="TensorFlow Estimator, TF-Slim, object detection API",
    framework="TensorFlow Estimator",
    pauses_inside=True,
    rate_covers="interval",
    marker=("loss = ", " per-step time "),
    # No name of a group may be there twice, so the loss before the step and the time of each spelling are companions.
    head=(
        r"(?:\bglobal step |\bloss = [-+.\w]+, step = |\bStep )(?P<step>\d+)"
        r"(?:: loss = [-+.\w]+ \([\d.]+ sec/step\)| per-step time [\d.]+s| \([\d.]+ sec\)|\s*$)"
    ),
    pair="",
    labels={},
    required=("step",),
    companions=(
        Companion("loss =", rf"\bloss = (?P<loss>{NUMBER})(?:, step = | \([\d.]+ sec/step)"),
        Companion(" sec/step)", rf"\((?P<logged_seconds_per_step>{NUMBER}) sec/step\)"),
        Companion("per-step time ", rf" per-step time (?P<logged_seconds_per_step>{NUMBER})s"),
        Companion("global_step/sec: ", rf"global_step/sec: (?P<logged_steps_per_second>{NUMBER})", belongs_to="next"),
    ),
    records=(event("save starts", "Saving checkpoints for ", r"Saving checkpoints for (?P<step>\d+)"),),
    # The detection API's script prints the line; the first steps are enough.
    sentences=(SettingSentence("script", " per-step time ", r"\b(?P<of_images>model_lib_v2)\.py:\d+\] Step \d{1,3} "),),
    choices=(Choice("training_data", "images", {"script:of_images": "model_lib_v2"}),),
    samples=(
        Sample(
            "INFO:tensorflow:global_step/sec: 12.5\nINFO:tensorflow:loss = 2.3125, step = 200 (8.000 sec)",
            {"step": 200, "loss": 2.3125, "logged_steps_per_second": 12.5},
        ),
        Sample(
            "INFO:tensorflow:global step 100: loss = 2.2500 (0.345 sec/step)\n"
            "INFO:tensorflow:Recording summary at step 100.",
            {"step": 100, "loss": 2.25, "logged_seconds_per_step": 0.345},
        ),
        Sample(
            "INFO:tensorflow:Step 300 per-step time 0.450s\nI0302 10:20:30.123456 1407 model_lib_v2.py:705] next",
            {"step": 300, "logged_seconds_per_step": 0.45},
        ),
    ),
)
