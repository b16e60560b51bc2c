"""OLMo 2024 and OLMo-core 2024 to 2026: a record of several lines, ``[step=10/1000,epoch=0]`` and indented pairs after it.

Rates are of one device, at first means over a window of some steps, which begins anew after a save and an evaluation:
the stamps of the records give the time, or the rate where their resolution is coarse.
OLMo-core also prints each mean since the start (``actual avg``), and a TFLOP/s and an MFU of full attention.
"""

from logparse.formats._base import LogFormat, PairLines, Reading, Sample

GIB, MIB = float(2**30), float(2**20)

FORMAT = LogFormat(
    name="olmo",
    title="OLMo, OLMo-core",
    framework="OLMo",
    # Source: OLMo train.py, SpeedMonitor, which is reset after each save and evaluation.
    rate_covers="window",
    marker=("[step=",),
    head=r"\[step=(?P<step>[\d,]+)/(?P<train_steps>[\d,]+)[\],]",
    pair="",
    pair_lines=PairLines(
        marker=("/CE loss=", "/CrossEntropyLoss=", "throughput/", "optim/", "gpu_memory/", "GPU Memory (MB)="),
        pair=r"^(?:.*?\s)?((?:train|throughput|optim|gpu_memory|System)/[^=]+)=(\S+)\s*$",
    ),
    labels={
        "train/CE loss": Reading("loss"),
        "train/CrossEntropyLoss": Reading("loss"),
        "train/load balancing loss": Reading("load_balancing_loss"),
        "optim/total grad norm": Reading("grad_norm"),
        "optim/total_grad_norm": Reading("grad_norm"),
        "optim/LR (group 0)": Reading("learning_rate"),
        "optim/learning_rate_group0": Reading("learning_rate"),
        "throughput/total tokens": Reading("consumed_tokens", absent=r".*[BTPE]"),
        "throughput/total_tokens": Reading("consumed_tokens", absent=r".*[BTPE]"),
        "throughput/device/TPS": Reading("logged_tokens_per_second_per_device", multiples=True),
        "throughput/device/tokens_per_second": Reading("logged_tokens_per_second_per_device"),
        "throughput/device/batches_per_second": Reading("logged_steps_per_second"),
        "throughput/device/BPS": Reading("logged_steps_per_second"),
        "throughput/device/flopsPS": Reading("logged_tflops_per_second_per_device", scale=1e-12, multiples=True),
        "throughput/device/MFU": Reading("logged_mfu", scale=0.01),
        "System/Peak GPU Memory (MB)": Reading("max_memory_allocated_bytes", scale=MIB),
        "gpu_memory/GPU active mem (GiB)": Reading("max_memory_allocated_bytes", scale=GIB),
        "gpu_memory/GPU reserved mem (GiB)": Reading("max_memory_reserved_bytes", scale=GIB),
    },
    ignored_patterns=(r"(?:train|throughput|optim|gpu_memory|System)/.*",),
    required=("step",),
    samples=(
        Sample(
            "[2024-04-17 09:42:38] INFO     [olmo.train:816, rank=0] [step=2/739328]\n"
            "    train/CrossEntropyLoss=10.73\n"
            "    train/Perplexity=45,773\n"
            "    throughput/total_tokens=8,388,608\n"
            "    throughput/device/tokens_per_second=45,538\n"
            "    throughput/device/batches_per_second=0.0869\n"
            "    System/Peak GPU Memory (MB)=43,309",
            {
                "timestamp": "2024-04-17T09:42:38",
                "step": 2,
                "train_steps": 739328,
                "loss": 10.73,
                "consumed_tokens": 8388608,
                "logged_tokens_per_second_per_device": 45538.0,
                "logged_steps_per_second": 0.0869,
                "max_memory_allocated_bytes": 43309 * MIB,
            },
        ),
        Sample(
            "2025-12-03 10:15:20.181\tnode1:0\tolmo_core.train.callbacks.console_logger:112\tINFO\t"
            "[step=100/2000,epoch=1,eta=1h2m]\n"
            "    gpu_memory/GPU active mem (GiB)=50.14\n"
            "    gpu_memory/GPU reserved mem (GiB)=62.69\n"
            "    optim/LR (group 0)=0.0005\n"
            "    optim/total grad norm=0.5816\n"
            "    throughput/device/MFU=44.57\n"
            "    throughput/device/TPS=258,163\n"
            "    throughput/device/TPS (actual avg)=195,922\n"
            "    throughput/device/flopsPS=441.0T\n"
            "    throughput/total tokens=52,428,800\n"
            "    train/CE loss=6.445",
            {
                "timestamp": "2025-12-03T10:15:20.181000",
                "step": 100,
                "train_steps": 2000,
                "loss": 6.445,
                "grad_norm": 0.5816,
                "learning_rate": 0.0005,
                "consumed_tokens": 52428800,
                "logged_tokens_per_second_per_device": 258163.0,
                "logged_tflops_per_second_per_device": 441.0,
                "logged_mfu": 0.4457,
                "max_memory_allocated_bytes": 50.14 * GIB,
                "max_memory_reserved_bytes": 62.69 * GIB,
            },
        ),
    ),
)
