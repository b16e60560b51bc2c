"""What all MLPerf training logs, ``:::MLLOG {...}``, print of the run, whatever their step lines hold.

Every line has a clock of its own. The benchmark names the model; a submitter may print the system as ``:::SYSJSON``.
"""

from logparse.formats._base import Choice, Companion, Name, SettingSentence, evaluation, event

STAMP = r'"time_ms": (?P<timestamp>[0-9]+),.*'
# The head of lines that report steps.
HEAD = r':::MLLOG \{.*?"tracked_stats", "value": \{'


def _point(name: str) -> SettingSentence:
    return SettingSentence("point", f'"key": "{name}"', rf'"key": "{name}", "value": "?(?P<{name}>[^",]+)')


def _system(name: str) -> SettingSentence:
    return SettingSentence("system", ":::SYSJSON", rf'^(?>.*?:::SYSJSON ).*"{name}": ?"(?P<{name}>\d+)"')


def of_file(key: str, column: str) -> Companion:
    """A number that the log prints once, for every step line."""
    return Companion(f'"{key}", "value": ', rf'"key": "{key}", "value": (?P<{column}>\d+)(?:\.0)?,', belongs_to="file")


BATCH = of_file("global_batch_size", "global_batch_size")

RECORDS = (
    # From here to run_start the job compiles and warms up. Source: the rules of MLPerf Training.
    event("process starts", '"key": "init_start"', STAMP + '"key": "init_start"'),
    event("training starts", '"key": "run_start"', STAMP + '"key": "run_start"'),
    event(
        "training starts",
        '"key": "block_start"',
        STAMP + r'"key": "block_start".*"(?:samples_count|first_epoch_num|step)": (?P<step>0)\b',
    ),
    # A run that misses the target quality ends as aborted.
    event("training ends", '"key": "run_stop"', STAMP + '"key": "run_stop".*"success"'),
    event("process exits", '"key": "run_stop"', STAMP + '"key": "run_stop".*"aborted"'),
)
# What is called accuracy is the loss of a language model; that of another benchmark may be a share.
EVALUATED = evaluation('"key": "eval_stop"', STAMP + '"key": "eval_stop"')
EVAL_LOSS = evaluation('"key": "eval_accuracy"', STAMP + r'"key": "eval_accuracy", "value": (?P<loss>[0-9.e+-]+)')

SENTENCES = (
    _point("max_sequence_length"),
    _point("gradient_accumulation_steps"),
    _point("submission_benchmark"),
    _point("lora_rank"),
    # A count of nodes and a name of the submitter's own choice.
    SettingSentence(
        "point",
        '"submission_platform"',
        r'"submission_platform", "value": "(?P<platform_nodes>\d+)x(?P<platform>[^"]+)',
    ),
    # Some name the devices of a node too: 4xHOST9x4GB200.
    SettingSentence(
        "point",
        '"submission_platform"',
        r'"submission_platform", "value": "\d+x[\w-]+?[-x](?P<platform_devices>\d+)x?(?:NVIDIA |AMD )?(?:MI|[A-Z]{1,2})\d{3}',
    ),
    _system("number_of_nodes"),
    _system("accelerators_per_node"),
)
NAMES = (
    Name("seq_length", "point:max_sequence_length"),
    Name("model_name", "point:submission_benchmark"),
    Name("num_nodes", "system:number_of_nodes"),
    Name("devices_per_node", "system:accelerators_per_node"),
    Name("num_nodes", "point:platform_nodes"),
    Name("devices_per_node", "point:platform_devices"),
)
CHOICES = (
    Choice("devices_per_node", "8", {"point:platform": "(?:NVIDIA )?DGX (?:A100|H100|H200|B200)"}),
    # By the rules of the benchmark; its logs do not print it.
    Choice("seq_length", "8192", {"point:submission_benchmark": "llama2_70b_lora"}),
    Choice(
        "training_data",
        "images",
        {"point:submission_benchmark": "resnet|ssd|maskrcnn|unet3d|stable_diffusion|flux1|retinanet"},
    ),
    Choice("training_data", "speech", {"point:submission_benchmark": "rnnt"}),
    Choice("lora", "True", {"point:lora_rank": r"[1-9]\d*"}),
)
