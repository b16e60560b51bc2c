"""litgpt: one line per pass, ``Epoch 1 | iter 8 step 4 | loss train: 1.7, val: n/a | iter time: 514 ms (step)``.

To 0.3, and in other words in early 2024 (litgpt#1055): ``iter 8 step 4: loss 1.7, iter time: 514.10ms (optimizer.step)``, on TPUs without loss, also with a bar after the pass. A step is the
passes up to the one marked ``(step)`` or ``(optimizer.step)``; its time is the sum of theirs. Where passes are missing, as with a
``log_interval`` beyond 1, it is unknown.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Name, Sample, SettingSentence

_TIME, _TIME_BEFORE = "| iter time: ", ", iter time: "


def _argument(name: str) -> SettingSentence:
    """A field of TrainArgs, or another setting printed on the same line."""
    return SettingSentence("arguments", f"{name}=", rf"\b{name}=(?P<{name}>\d+)")


FORMAT = LogFormat(
    name="litgpt",
    title="litgpt",
    framework="litgpt",
    marker=("(step)", "(optimizer.step)", "(opt.step)"),
    head=(
        r"\b(?:Ep(?:och)? \d+ \| )?iter \d+ (?:\| )?step (?P<step>\d+)(?: \||:) (?:loss (?:train(?: \(curr\))?: )?"
        rf"(?P<loss>{NUMBER}), )?(?:val(?: \(prev val iter\))?: [^|]*\| )?iter time: {NUMBER} ?ms \((?:opt(?:imizer)?\.)?step\)"
    ),
    pair="",
    labels={},
    required=("step",),
    companions=(
        Companion(
            _TIME,
            rf"\biter (?P<part>\d+) (?:\| )?st[eE]p \d+:? .*\| iter time: (?P<elapsed_time_per_iteration_ms>{NUMBER}) ms",
            belongs_to="sum",
        ),
        Companion(
            _TIME_BEFORE,
            rf"\biter (?P<part>\d+) (?:\| )?step \d+: .*, iter time: (?P<elapsed_time_per_iteration_ms>{NUMBER}) ?ms",
            belongs_to="sum",
        ),
        Companion(
            ": iter time: ",
            rf"\biter (?P<part>\d+) step \d+: iter time: (?P<elapsed_time_per_iteration_ms>{NUMBER}) ?ms",
            belongs_to="sum",
        ),
    ),
    sentences=(
        _argument("global_batch_size"),
        _argument("micro_batch_size"),
        _argument("max_seq_length"),
        # Pretraining counts tokens, and has None here.
        _argument("epochs"),
        SettingSentence("arguments", "'devices': ", r"'devices': (?P<devices>\d+)"),
        SettingSentence("arguments", "'num_nodes': ", r"'num_nodes': (?P<num_nodes>\d+)"),
        SettingSentence("arguments", "'precision': ", r"'precision': '(?P<precision>[\w-]+)'"),
        SettingSentence("arguments", "'lora_r': ", r"'lora_r': (?P<lora_r>\d+)"),
        SettingSentence("sizes", "Number of trainable", r"Number of trainable parameters: (?P<trainable>[\d,]+)"),
    ),
    names=(
        Name("global_batch_size", "arguments:global_batch_size"),
        Name("micro_batch_size", "arguments:micro_batch_size"),
        Name("seq_length", "arguments:max_seq_length"),
        Name("devices_per_node", "arguments:devices"),
        Name("num_nodes", "arguments:num_nodes"),
        Name("adapter_parameters", "sizes:trainable", when={"arguments:lora_r": r"[1-9]\d*"}),
    ),
    choices=(
        Choice("precision", "bf16", {"arguments:precision": "bf16-.*"}),
        Choice("precision", "fp16", {"arguments:precision": "16-.*"}),
        Choice("precision", "fp32", {"arguments:precision": "32-.*"}),
        Choice("lora", "True", {"arguments:lora_r": r"[1-9]\d*"}),
        # Fine-tuning pads to the longest sample of a batch: the length is the most that one has.
        Choice("variable_seq_lengths", "True", {"arguments:epochs": r"\d+"}),
    ),
    samples=(
        Sample(
            "Epoch 1 | iter 7 step 3 | loss train: 1.678, val: n/a | iter time: 511.70 ms\n"
            "Epoch 1 | iter 8 step 4 | loss train: 1.741, val: n/a | iter time: 514.14 ms (step)",
            {"step": 4, "loss": 1.741, "elapsed_time_per_iteration_ms": 511.70 + 514.14},
        ),
        Sample(
            "iter 11 step 5: loss 1.6780, iter time: 212.50ms\n"
            "iter 12 step 6: loss 1.7410, iter time: 220.00ms (optimizer.step)",
            {"step": 6, "loss": 1.741, "elapsed_time_per_iteration_ms": 432.5},
        ),
        Sample(
            "[rank: 0] iter 34 step 35: iter time: 3372.50ms (optimizer.step)\n[rank: 0] next",
            {"step": 35, "elapsed_time_per_iteration_ms": 3372.5},
        ),
        Sample(
            "iter 9 | step 9: loss 9.8125, iter time: 431.25 ms (optimizer.step), remaining time: 0.35 days",
            {"step": 9, "loss": 9.8125, "elapsed_time_per_iteration_ms": 431.25},
        ),
        Sample(
            "Epoch 1 | iter 48 step 48 | loss train: 2.345, val: 2.5 | iter time: 123.45 ms (step) remaining time: 0:10:00",
            {"step": 48, "loss": 2.345, "elapsed_time_per_iteration_ms": 123.45},
        ),
        Sample(
            "Ep 1 | iter 7 | step 3: loss train (curr): 1.671, val (prev val iter): None | iter time: 156.25 ms\n"
            "Ep 1 | iter 8 | step 4: loss train (curr): 1.761, val (prev val iter): None | iter time: 121.25 ms (opt.step)",
            {"step": 4, "loss": 1.761, "elapsed_time_per_iteration_ms": 277.5},
        ),
    ),
)
