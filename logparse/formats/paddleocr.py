"""PaddleOCR 2.x and 3.x: ``epoch: [1/500], global_step: 10, lr: 0.0001, loss: 30.1, avg_reader_cost: 0.1 s, avg_batch_cost: 0.45 s, avg_samples: 32.0, ips: 70.1 samples/s``.

``avg_batch_cost`` is the time of the batches since the line before, the reader's share included, over ``print_batch_step``; an
epoch may end with fewer batches (``context.corrections``). ``ips`` is samples/s of one device. Evaluation is not in them.

Source: PaddlePaddle/PaddleOCR 2.5 to 3.x, tools/program.py, train.
"""

from logparse.formats._base import LogFormat, Reading, Sample, SettingSentence, event

MIB = float(2**20)

FORMAT = LogFormat(
    name="paddleocr",
    title="PaddleOCR",
    framework="PaddleOCR",
    time_of="full interval",
    trains_on="images",
    traces=(r"\bppocr[/.]", r" ppocr (?:INFO|ERROR|WARNING): "),
    pauses_inside=False,
    rate_covers="interval",
    marker=("avg_batch_cost: ",),
    head=r"\bepoch: \[(?P<epoch>\d+)/(?P<epochs>\d+)\], global_step: (?P<step>\d+), ",
    pair=r"([a-z_][\w ]*): ([^,]*?)(?:, |\s*$)",
    separator=", ",
    labels={
        "lr": Reading("learning_rate"),
        "loss": Reading("loss"),
        "avg_batch_cost": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix=" s"),
        "ips": Reading("logged_samples_per_second_per_device", suffix=" samples/s"),
        "max_mem_reserved": Reading("max_memory_reserved_bytes", scale=MIB, suffix=" MB"),
        "max_mem_allocated": Reading("max_memory_allocated_bytes", scale=MIB, suffix=" MB"),
    },
    ignored_patterns=(r".*",),
    records=(event("save ends", "save model in ", r"save model in "),),
    sentences=(SettingSentence("config", "print_batch_step", r"\bprint_batch_step ?: (?P<print_batch_step>\d+)"),),
    samples=(
        Sample(
            "[2022/05/01 12:00:00] ppocr INFO: epoch: [1/500], global_step: 10, lr: 0.000100, acc: 0.0, loss: 30.125, "
            "avg_reader_cost: 0.12340 s, avg_batch_cost: 0.45625 s, avg_samples: 32.0, ips: 70.13700 samples/s, "
            "eta: 1 day, 1:23:45, max_mem_reserved: 1234 MB, max_mem_allocated: 1000 MB",
            {
                "timestamp": "2022-05-01T12:00:00",
                "step": 10,
                "epoch": 1,
                "epochs": 500,
                "learning_rate": 1e-4,
                "loss": 30.125,
                "elapsed_time_per_iteration_ms": 456.25,
                "logged_samples_per_second_per_device": 70.137,
                "max_memory_reserved_bytes": 1234 * MIB,
                "max_memory_allocated_bytes": 1000 * MIB,
            },
        ),
    ),
)
