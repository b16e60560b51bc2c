"""torchtune 0.1 to 0.6: one line per optimizer step, without its time.

``Step 3 | loss:1.25 lr:2e-05 tokens_per_second_per_gpu:640.25 ...``. How many tokens a step had is not printed:
the rate gives the time where flags say it, as for samples packed to one length. Since the end of 2024 it is of tokens that have a loss alone.
"""

from logparse.formats._base import Choice, LogFormat, Name, Reading, Sample, SettingSentence
from logparse.formats._preference import PREFERENCE_CHOICES, PREFERENCE_SENTENCES

GIB = float(2**30)

# The configuration that a recipe prints as YAML: name, indentation, value. Only packed samples have one length.
_SENTENCES = tuple(
    SettingSentence("config", f"{name}: ", rf"^{indentation}{name}: (?P<{name}>{value})\s*$")
    for name, indentation, value in (
        ("batch_size", "", r"\d+"),
        ("gradient_accumulation_steps", "", r"\d+"),
        ("max_seq_len", "  ", r"\d+"),
        ("packed", "  ", r"\w+"),
    )
)
_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_PACKED = {"config:packed": "(?i:true)"}
_NAMES = (
    Name("model_name", "model:name"),
    Name("micro_batch_size", "config:batch_size"),
    Name("num_microbatches", "config:gradient_accumulation_steps"),
    Name("seq_length", "config:max_seq_len", when=_PACKED),
)
_CHOICES = (
    Choice("packed_documents", "True", _PACKED),
    *(Choice("precision", precision, {"model:dtype": dtype}) for dtype, precision in _TYPES.items()),
    *(Choice("lora", "True", {f"{kind}:recipe": "(?i:lora.*)"}) for kind in ("command", "class")),
    *(Choice("world_size", "1", {f"{kind}:recipe": "(?i:.*single_?device)"}) for kind in ("command", "class")),
)

FORMAT = LogFormat(
    name="torchtune",
    title="torchtune",
    framework="torchtune",
    rate_covers="step",
    marker=("_per_second_per_gpu:", " gpu_resources:"),
    head=r"\bStep (?P<step>\d+) \| ",
    pair=r"([A-Za-z_][\w/]*):(\S+)(?:\s|$)",
    separator=r"\s",
    labels={
        "loss": Reading("loss"),
        "lr": Reading("learning_rate"),
        "tokens_per_second_per_gpu": Reading("logged_tokens_per_second_per_device"),
        "grad_norm": Reading("grad_norm"),
        "peak_memory_alloc": Reading("max_memory_allocated_bytes", scale=GIB),
        "peak_memory_reserved": Reading("max_memory_reserved_bytes", scale=GIB),
    },
    ignored=frozenset({"peak_memory_active", "gpu_resources"}),
    # What a recipe adds: preference optimization, distillation, quantization.
    ignored_patterns=(r"(?:rewards|log_probs|logits)/.*", r"\w+_loss"),
    required=("step",),
    sentences=(
        *_SENTENCES,
        # The path of the class that the configuration names: llama3_2.lora_llama3_2_3b.
        SettingSentence(
            "model",
            "torchtune.models.",
            r"\btorchtune\.models\.\w+\.(?:q?[ld]ora_)?(?P<name>\w+_\d+b)(?:_instruct)?\s*$",
        ),
        SettingSentence("model", "initialized with precision", r"initialized with precision torch\.(?P<dtype>\w+)"),
        # The command, and the class of the recipe that it starts.
        SettingSentence(
            "command", "tune run ", r"\btune run (?:\S+ )*?(?P<recipe>\w+_(?:single_device|distributed))\b"
        ),
        SettingSentence("class", " with resolved config", r"Running (?P<recipe>\w+) with resolved config"),
        *PREFERENCE_SENTENCES,
    ),
    names=_NAMES,
    choices=(*_CHOICES, *PREFERENCE_CHOICES),
    samples=(
        Sample(
            "Step 3 | loss:1.1718750596046448 lr:2e-05 tokens_per_second_per_gpu:640.2518310546875 ",
            {
                "step": 3,
                "loss": 1.1718750596046448,
                "learning_rate": 2e-05,
                "logged_tokens_per_second_per_device": 640.2518310546875,
            },
        ),
        Sample(
            "Step 12 | loss:0.75 lr:0.0003 tokens_per_second_per_gpu:1250.5 peak_memory_active:14.5 "
            "peak_memory_alloc:14.25 peak_memory_reserved:16.5 grad_norm:1.5",
            {
                "step": 12,
                "loss": 0.75,
                "learning_rate": 0.0003,
                "logged_tokens_per_second_per_device": 1250.5,
                "max_memory_allocated_bytes": 14.25 * GIB,
                "max_memory_reserved_bytes": 16.5 * GIB,
                "grad_norm": 1.5,
            },
        ),
    ),
)
