"""OpenNMT-py: ``Step 50/100000; acc: 12.3; ppl: 123.4; xent: 4.8; lr: 0.00001; sents: 1234; bsz: 123/120/4; 12345/12000 tok/s;     12 sec;``.

A step is an update. No time: the clock of whole seconds at the end gives it, or the stamps. Tokens per second are those of
sources and of targets.

Source: OpenNMT/OpenNMT-py, onmt/utils/statistics.py.
"""

from logparse.formats._base import NUMBER, Companion, LogFormat, Reading, Sample, event

_STEP = " tok/s; "

FORMAT = LogFormat(
    name="opennmt",
    title="OpenNMT-py",
    framework="OpenNMT",
    traces=(r"\bonmt[/.]",),
    marker=(_STEP,),
    head=r"\bStep +(?P<step>\d+)(?:/ *(?P<train_steps>\d+))?; ",
    pair=rf"([a-z]+): +({NUMBER});",
    separator=";",
    labels={"xent": Reading("loss"), "lr": Reading("learning_rate")},
    ignored_patterns=(r".*",),
    required=("step",),
    companions=(Companion("tok/s; ", r" tok/s; +(?P<runtime_seconds>\d+) sec"),),
    records=(event("save starts", "Saving checkpoint ", r"Saving checkpoint \S*_step_(?P<step>\d+)"),),
    samples=(
        Sample(
            "[2023-05-06 12:00:00,125 INFO] Step 50/100000; acc: 12.3; ppl: 123.4; xent: 4.8; lr: 0.00001; sents:    1234; "
            "bsz:  123/ 120/ 4; 12345/12000 tok/s;     12 sec;\n"
            "[2023-05-06 12:00:00,126 INFO] 12345/12000 tok/s;     12 sec;",
            {
                "timestamp": "2023-05-06T12:00:00.125000",
                "step": 50,
                "train_steps": 100000,
                "loss": 4.8,
                "learning_rate": 1e-5,
                "runtime_seconds": 12.0,
            },
        ),
    ),
)
