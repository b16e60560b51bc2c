"""What both DeepSpeed engines print about the run: the dump of its configuration, timers, checkpoints, profiles."""

from logparse.formats._base import Block, Choice, Companion, Name, Record, SettingSentence, evaluation, event

_VALUE = r"(?:\.+ )?\s?"


def _dumped(name: str, value: str = r"\w+") -> SettingSentence:
    """A line of the dump: the name, dots where there is room for them, the value."""
    return SettingSentence("engine", "print]", rf":print\]\s+{name} {_VALUE}(?P<{name}>{value})\s*$")


def _latency(unit: str, scale: float) -> Record:
    """The flops profiler's times of one micro-step."""
    pattern = rf"^\s*(?P<name>(?:fwd|bwd|step|iter) latency):\s+(?P<max_ms>[\d.]+) {unit}\s*$"
    return Record("timers", " latency:", pattern, scale=scale)


RECORDS = (
    # One line per micro-step and one per step; in brackets are parts of the timer before them.
    Record("timers", "time (ms) |", r"\| (?P<name>[a-z][\w/ -]*): (?P<max_ms>[\d.]+)", every=True),
    *(_latency(unit, scale) for unit, scale in (("us", 1e-3), ("ms", 1.0), ("s", 1e3))),
    # The launcher's, on the host that starts the job.
    event("process exits", " exits successfully", r"\[launch\.py:\d+:main\] Process \d+ exits successfully"),
    event("save starts", "[Torch] Checkpoint", r"\[Torch\] Checkpoint global_step(?P<step>\d+) is about to be saved"),
    event("save ends", "[Torch] Checkpoint", r"\[Torch\] Checkpoint global_step(?P<step>\d+) is ready now"),
    # DeepSpeed-Chat, after the last step.
    event("save starts", "saving the final model", r"^saving the final model \.\.\."),
    event("save starts", "saving model ...", r"^saving model \.\.\."),
    # DeepSpeed-Chat, before the first epoch and after each: of its first two steps, SFT and the reward model.
    evaluation("***** Evaluating ", r"\*{5} Evaluating (?:perplexity|reward), Epoch ", "eval"),
    event("process starts", "DeepSpeed info: version", r"DeepSpeed info: version="),
)

# Of the step that follows, where the trainer prints none of it. Only rank 0 prints it.
SKIPPED_UPDATES = Companion(
    "Attempted loss scale: ", r"OVERFLOW! Rank (?P<skipped_iterations>0) Skipping step\.", belongs_to="count"
)
# The line, for samples.
SKIPPED_UPDATE = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"

BLOCKS = (
    Block(
        kind="deepspeed",
        marker="json = {",
        start=r"\bjson = \{",
        end=r"(?:^|: )\}\s*$",
        entry=r'"(\w+)": (\{|[^,]*)',
        nested=True,
        max_lines=300,
    ),
)

_SIZES = {
    "train_batch_size": "global_batch_size",
    "train_micro_batch_size_per_gpu": "micro_batch_size",
    "gradient_accumulation_steps": "num_microbatches",
    "steps_per_print": "log_interval",
}

# Its launcher counts the processes of all nodes.
LAUNCHED = SettingSentence("launcher", "dist_world_size=", r"\bdist_world_size=(?P<world_size>\d+)")
# The arguments of the launcher, where a shell or a script shows the command.
COMMAND = {"num_nodes": "num_nodes", "num_gpus": "devices_per_node"}
SENTENCES = (
    LAUNCHED,
    *(SettingSentence("command", f"--{n}", rf"\bdeepspeed\s.*--{n}[= ](?P<{n}>\d+)(?:\s|$)") for n in COMMAND),
    *(_dumped(name, r"\d+") for name in (*_SIZES, "world_size", "zero_optimization_stage")),
    *(_dumped(name) for name in ("bfloat16_enabled", "fp16_enabled")),
    SettingSentence(
        "topology", "Using topology: {", r"^(?>.*?Using topology: ).*ProcessCoord\((?P<last_process>[^)]*)\): \d+\}"
    ),
    # DeepSpeed-Chat's supervised fine-tuning, which pads each sample to that length. A reward model takes pairs.
    SettingSentence(
        "chat",
        "--max_seq_len ",
        r"^(?!.*num_padding_at_beginning)(?=.*--data_split ).*--max_seq_len (?P<max_seq_len>\d+)\b",
    ),
    SettingSentence(
        "chat", "--data_split ", r"--model_name_or_path (?:\S*/)?(?=[^/\s]*\d)(?P<model_name>[^/\s]+)(?:\s|$)"
    ),
    SettingSentence("chat", "--data_split ", r"--per_device_train_batch_size (?P<batch>\d+)\b"),
    # Of the whole model: as ZeRO-3 shares it out, and as the pipeline counts it.
    SettingSentence(
        "partition",
        "finished initializing model",
        r"finished initializing model (?:with|- num_params = \d+, num_elems =) (?P<billions>[\d.]+)B\b",
    ),
    SettingSentence("stage", " UNIQUE_PARAMS=", r"RANK=0 .* UNIQUE_PARAMS=(?P<unique_params>\d+)"),
    SettingSentence("profile", "world size:", r"^\s*world size:\s+(?P<world_size>\d+)\s*$"),
)

NAMES = (
    *(Name(quantity, f"engine:{name}") for name, quantity in _SIZES.items()),
    *(Name(quantity, f"deepspeed:{name}") for name, quantity in _SIZES.items()),
    Name("last_process", "topology:last_process"),
    # The engine's own world_size leaves out pipeline, tensor and sequence parallel ranks.
    Name("data_parallel_size", "engine:world_size"),
    Name("zero_stage", "engine:zero_optimization_stage"),
    Name("zero_stage", "deepspeed:zero_optimization.stage"),
    Name("world_size", "launcher:world_size"),
    Name("world_size", "profile:world_size"),
    *(Name(quantity, f"command:{name}") for name, quantity in COMMAND.items()),
    Name("model_parameters", "stage:unique_params"),
    Name("model_parameters", "partition:billions", scale=1e9),
    Name("seq_length", "chat:max_seq_len"),
    Name("micro_batch_size", "chat:batch"),
    Name("model_name", "chat:model_name"),
)

CHOICES = (
    Choice("precision", "bf16", {"engine:bfloat16_enabled": "True"}),
    Choice("precision", "fp16", {"engine:fp16_enabled": "True"}),
    Choice("precision", "fp32", {"engine:fp16_enabled": "False", "engine:bfloat16_enabled": "False"}),
    Choice("precision", "bf16", {"deepspeed:bf16.enabled": "true"}),
    Choice("precision", "fp16", {"deepspeed:fp16.enabled": "true"}),
)
