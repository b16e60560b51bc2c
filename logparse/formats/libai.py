"""LiBai (OneFlow): one line per so many steps, ``iteration: 19/10000  consumed_samples: 80  ... time: 7.5187 s/iter``.

Iterations count from 0. ``time`` is the mean since the third step; ``context.corrections`` takes it apart. Its stamps
have no year. ``total_throughput`` is of all devices, by that mean.
"""

from logparse.formats._base import LogFormat, MeanSinceStart, Reading, Sample

FORMAT = LogFormat(
    name="libai",
    title="LiBai (OneFlow)",
    framework="LiBai",
    # Its timer, which is Detectron2's, begins with the third step; iterations count from 0.
    mean_since_start=MeanSinceStart(1, 0.05, resumed=False),
    marker=("l_throughput: ",),
    head=r"\biteration: (?P<step>\d+)/(?P<train_steps>\d+)\s+",
    pair=r"([a-z_]+): (\S+(?: s/iter| samples/s)?)(?:\s+|$)",
    separator=r"\s",
    labels={
        "consumed_samples": Reading("consumed_samples"),
        "total_loss": Reading("loss"),
        "time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix=" s/iter"),
        "total_throughput": Reading("logged_samples_per_second", suffix=" samples/s"),
        "lr": Reading("learning_rate"),
    },
    ignored=frozenset({"data_time"}),
    ignored_patterns=(r"\w*(?:loss|acc)\w*",),
    samples=(
        Sample(
            "[09/10 10:43:32 lb.utils.events]:  eta: 21:05:47  iteration: 39/10000  consumed_samples: 160  "
            "total_loss: 9.027  time: 7.6572 s/iter  data_time: 0.0019 s/iter total_throughput: 0.52 samples/s lr: 1.50e-04",
            {
                "timestamp": "1904-09-10T10:43:32",
                "step": 39,
                "train_steps": 10000,
                "consumed_samples": 160,
                "loss": 9.027,
                "elapsed_time_per_iteration_ms": 7657.2,
                "logged_samples_per_second": 0.52,
                "learning_rate": 1.5e-4,
            },
        ),
    ),
)
