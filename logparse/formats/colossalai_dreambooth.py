"""ColossalAI 0.3, its example of DreamBooth: after each update of the weights ``max GPU_mem cost is 3812.82 MB``.

The line has neither step nor time: lines are counted, and the stamps of the logger give the time, which includes all
between two updates. ``rich`` prints the stamp (month, day, year) before the first of several lines.
"""

from logparse.formats._base import Companion, LogFormat, Name, Reading, Sample, SettingSentence, event

MIB = float(2**20)
_STAMP = r"^\[(?P<timestamp>\d\d/\d\d/\d\d \d\d:\d\d:\d\d)\] INFO +colossalai - "

FORMAT = LogFormat(
    name="colossalai-dreambooth",
    title="ColossalAI (example of DreamBooth)",
    framework="ColossalAI",
    trains_on="images",
    marker=("max GPU_mem cost is ",),
    head=r"\bmax GPU_mem ",
    pair=r"\b(cost) is ([\d.]+ MB)(?:\s|$)",
    separator=r"\s",
    labels={"cost": Reading("max_memory_allocated_bytes", scale=MIB, suffix=" MB")},
    required=("step",),
    counted=True,
    companions=(
        Companion("] INFO     colossalai - ", _STAMP, belongs_to="next"),
        Companion("Total optimization steps", r"Total optimization steps = (?P<train_steps>\d+)", belongs_to="file"),
    ),
    records=(
        event("training starts", "***** Running training", r"\*\*\*\*\* Running training"),
        event("save starts", "Saving model checkpoint to", r"Saving model checkpoint to"),
    ),
    # A sentence is broken where the line is full.
    sentences=(
        SettingSentence("banner", "world size: ", r"^(?:.*initialized,)?\s+world size: (?P<world_size>\d+)\s*$"),
        SettingSentence("banner", "& accumulation) = ", r"\bdistributed & accumulation\) = (?P<total>\d+)"),
    ),
    names=(Name("world_size", "banner:world_size"), Name("global_batch_size", "banner:total")),
    samples=(
        Sample(
            "[03/31/26 08:00:01] INFO     colossalai - colossalai - INFO:\n"
            "                             examples/images/dreambooth/train.py:669 main\n"
            "                    INFO     colossalai - colossalai - INFO: max GPU_mem cost is 3806.5 MB    ",
            {"timestamp": "2026-03-31T08:00:01", "step": 1, "max_memory_allocated_bytes": 3806.5 * MIB},
        ),
        Sample(
            "                    INFO     colossalai - colossalai - INFO:   Total optimization steps = 400         \n"
            "                    INFO     colossalai - colossalai - INFO: max GPU_mem cost is 3806.5 MB    ",
            {"step": 1, "train_steps": 400, "max_memory_allocated_bytes": 3806.5 * MIB},
        ),
    ),
)
