"""verl 0.1 to 0.7, reinforcement learning: ``step:12 - actor/lr:1e-06 - timing_s/step:45.6 - perf/throughput:1234``.

A step has phases (rollout, reward, update), which are timers and can overlap. ``perf/throughput`` is tokens of prompts
and answers per device over the whole step, by the log's own count: no MFU is made of a mixed step. To 0.1 the timers
are ``timing/...`` and no time of the step is printed.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Name, Reading, Record, Sample, SettingSentence

GIB = float(2**30)
# From 0.5 on numbers may be printed as numpy's: np.float64(0.5).
VALUE = rf"(?:np\.\w+\()?({NUMBER})\)?"
# The configuration is a dict in columns: the indentation is that of the section, after the process that prints it.
_PREFIX = r"^(?:\([^)]*\) )?"
_ACTOR, _TRAINER = len("{'actor_rollout_ref': {'model': {"), len(" 'trainer': {")
# The name of a model: the last folder of its path, where it has a number that is not of a step.
_MODEL = r"'(?:[^']*/)?(?!global_step_|checkpoint-)(?=[^'/]*\d)(?<!snapshots/)(?P<model>[^'/]+)/?'"


def _setting(name: str, indentation: int, value: str = "") -> SettingSentence:
    found = value or rf"(?P<{name}>\d+)"
    return SettingSentence("config", f"'{name}': ", rf"{_PREFIX} {{{indentation}}}'{name}': {found}[,}}]")


FORMAT = LogFormat(
    name="verl",
    title="verl",
    framework="verl",
    # The timer of a step is around validation and saving. Source: verl trainer/ppo/ray_trainer.py.
    pauses_inside=True,
    marker=("/pg_loss:", "in/loss:"),
    head=r"\bstep:(?P<step>\d+) - ",
    pair=rf"([^\s:]+):{VALUE}(?: - |\s|$)",
    separator=" - ",
    labels={
        "timing_s/step": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "perf/time_per_step": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "perf/throughput": Reading("logged_tokens_per_second_per_device"),
        # Of the update of the policy alone.
        "perf/mfu/actor": Reading("logged_mfu"),
        "perf/max_memory_allocated_gb": Reading("max_memory_allocated_bytes", scale=GIB),
        "perf/max_memory_reserved_gb": Reading("max_memory_reserved_bytes", scale=GIB),
        "actor/lr": Reading("learning_rate"),
        "actor/lr(1e-4)": Reading("learning_rate", scale=1e-4),
        "actor/grad_norm": Reading("grad_norm"),
        "actor/pg_loss": Reading("loss"),
        "train/loss": Reading("loss"),
        "train/lr": Reading("learning_rate"),
        "train/lr(1e-3)": Reading("learning_rate", scale=1e-3),
    },
    # What an algorithm, a reward or a data set adds, each with its own name.
    ignored_patterns=(r"[^/]+/.*",),
    required=("step",),
    # To 0.1 they follow each other. Source: verl 0.1, trainer/ppo/ray_trainer.py, fit.
    phases=("gen", "ref", "values", "adv", "update_critic", "update_actor"),
    parts={
        "gen": "generation",
        "reward": "reward",
        "ref": "reference",
        "old_log_prob": "log_probs",
        "values": "values",
        "adv": "advantages",
        **dict.fromkeys(("update_critic", "update_actor"), "update"),
        "update_weights": "weights",
    },
    # The plan: before the first step, on the bar, of the actor's optimizer in 0.1, of supervised fine-tuning.
    companions=tuple(
        Companion(marker, printed + r"(?P<train_steps>[1-9]\d*)" + end, belongs_to="next")
        for marker, printed, end in (
            ("Total training steps: ", "Total training steps: ", r"\s*$"),
            ("Training Progress: ", r"Training Progress: +\d+%\|[^|]*\| *\d+/", r" \["),
            (", num_warmup_steps: ", r"\bTotal steps: ", ", num_warmup_steps: "),
            (", total number of steps ", r"number of epochs \d+, total number of steps ", r"\s*$"),
        )
    ),
    records=(
        Record(
            "timers",
            " - timing",
            r" timing(?:_s)?/(?P<name>[\w/]+):(?:np\.\w+\()?(?P<max_ms>[\d.]+)",
            scale=1000,
            every=True,
        ),
    ),
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(
        SettingSentence("step", " - timing", r"(?P<generates>timing(?:_s)?/gen):", first=True),
        _setting("n_gpus_per_node", _TRAINER),
        _setting("nnodes", _TRAINER),
        _setting("path", _ACTOR, _MODEL),
        _setting("lora_rank", _ACTOR),
        SettingSentence("config", "'adv_estimator': ", r"'adv_estimator': '(?P<adv_estimator>\w+)'"),
        # Printed by the shell that runs it.
        SettingSentence(
            "launch",
            "--nproc_per_node",
            r"^\+ torchrun .*--nnodes[= ](?P<nnodes>\d+) .*--nproc_per_node[= ](?P<nproc_per_node>\d+) ",
        ),
        # Of supervised fine-tuning, whose configuration is a dict on one line.
        SettingSentence("sft", "{'data': {'train_batch_size': ", r"^\{'data': \{'train_batch_size': (?P<batch>\d+),"),
        SettingSentence("sft", "'partial_pretrain': ", rf"^\{{'data': .*'partial_pretrain': {_MODEL}"),
        SettingSentence("sft", "'partial_pretrain': ", r"^\{'data': .*'lora_rank': (?P<lora_rank>\d+)"),
        # The model that is trained comes after its critic and the reference, in the JSON of transformers.
        SettingSentence(
            "model", '"num_hidden_layers": ', rf'{_PREFIX}  "num_hidden_layers": (?P<num_hidden_layers>\d+)', last=True
        ),
    ),
    names=(
        Name("devices_per_node", "config:n_gpus_per_node"),
        Name("num_nodes", "config:nnodes"),
        Name("devices_per_node", "launch:nproc_per_node"),
        Name("num_nodes", "launch:nnodes"),
        Name("global_batch_size", "sft:batch"),
        Name("num_layers", "model:num_hidden_layers"),
        Name("model_name", "config:model"),
        Name("model_name", "sft:model"),
    ),
    choices=(
        Choice("mixed_step", "rollouts", {"step:generates": ".+"}),
        Choice("mixed_step", "rollouts", {"config:adv_estimator": ".+"}),
        *(Choice("lora", "True", {f"{kind}:lora_rank": r"[1-9]\d*"}) for kind in ("config", "sft")),
    ),
    samples=(
        Sample(
            "(TaskRunner pid=1234) Total training steps: 700\n"
            "(TaskRunner pid=1234) step:2 - actor/entropy:0.234 - actor/pg_loss:np.float64(-0.0019) - "
            "actor/grad_norm:np.float64(0.63) - perf/max_memory_allocated_gb:np.float64(46.5) - "
            "actor/lr:np.float64(1e-06) - perf/mfu/actor:np.float64(0.2875) - timing_s/gen:101.5 - timing_s/step:216.5 - perf/throughput:766.58",
            {
                "step": 2,
                "train_steps": 700,
                "loss": -0.0019,
                "grad_norm": 0.63,
                "max_memory_allocated_bytes": 46.5 * GIB,
                "learning_rate": 1e-06,
                "elapsed_time_per_iteration_ms": 216500.0,
                "logged_mfu": 0.2875,
                "logged_tokens_per_second_per_device": 766.58,
            },
        ),
        Sample(
            "(TaskRunner pid=1234) Training Progress:   0%|          | 2/700 [04:10<19:48:32, 102.17s/it]\n"
            "(TaskRunner pid=1234) step:3 - actor/pg_loss:0.0125 - timing_s/step:101.5",
            {"step": 3, "train_steps": 700, "loss": 0.0125, "elapsed_time_per_iteration_ms": 101500.0},
        ),
        Sample(
            "(WorkerDict pid=1235) Total steps: 435, num_warmup_steps: 0\n"
            "(main_task pid=1234) step:0 - timing/gen:21.5 - actor/pg_loss:-0.005",
            {"step": 0, "train_steps": 435, "loss": -0.005},
        ),
        Sample(
            "Number of steps/epoch 29, number of epochs 2, total number of steps 58\n"
            "step:1 - train/loss:0.031 - train/lr(1e-3):0.004",
            {"step": 1, "train_steps": 58, "loss": 0.031, "learning_rate": 4e-06},
        ),
    ),
)
