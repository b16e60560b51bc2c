"""ms-swift 2.x to 4.x on the Hugging Face Trainer: its dict with the step and a clock, on the console and as JSON lines.

``train_speed`` is the mean since the start; ``elapsed_time`` (``1m 34s``) has whole seconds.
"""

from logparse.formats._base import (
    NUMBER,
    Block,
    Choice,
    Companion,
    LogFormat,
    Name,
    Reading,
    Record,
    Sample,
    SettingSentence,
    evaluation,
)
from logparse.formats._deepspeed import SKIPPED_UPDATE, SKIPPED_UPDATES
from logparse.formats._hf_arguments import HF_ARGUMENT_CHOICES, HF_ARGUMENT_SENTENCES, HF_ARGUMENTS
from logparse.formats._hf_config import HF_CHOICES, HF_CONFIG, HF_NAMES, SUMMARY
from logparse.formats._peft import PEFT_CHOICES, PEFT_NAMES, PEFT_SENTENCES
from logparse.formats._preference import PREFERENCE_CHOICES, PREFERENCE_SENTENCES, algorithm_choices

GIB = float(2**30)
# The quotes of a dict, or of JSON.
_PLAN = r"['\"](?:global_step/max_steps|iteration)['\"]: ['\"]\d+"
# The Trainer of transformers has neither; Megatron-SWIFT prints other arguments. With sequence parallelism its own count
# of the batch and its epochs differ.
_NOT_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size")

FORMAT = LogFormat(
    name="ms-swift",
    title="ms-swift (console, logging.jsonl)",
    framework="ms-swift",
    rate_covers="start",
    marker=("{'loss': ", '{"loss": ', "{'eps': ", '{"eps": '),
    # The last JSON line holds the history of all steps. PPO has episodes per second first, and no loss of its own.
    head=rf"(?:\{{'|^\{{\")(?:loss['\"]: ['\"]?(?P<loss>{NUMBER})['\"]?, |eps['\"]: \d+, )",
    pair=r"['\"]([^'\"]+)['\"]: (?:['\"]([^'\"]*)['\"]|([^'\",{}\[\]]+))(?:, |\})",
    separator=r"[,}]",
    labels={
        "global_step/max_steps": Reading("step", suffix=r"/\d+"),
        "global_step": Reading("step"),  # 2024
        "iteration": Reading("step", suffix=r"/\d+"),  # 4.x with Megatron
        "grad_norm": Reading("grad_norm"),
        "learning_rate": Reading("learning_rate"),
        "lr": Reading("learning_rate"),  # PPO
        "epoch": Reading("epochs_done"),
        "elapsed_time": Reading("runtime_seconds"),
        "memory(GiB)": Reading("max_memory_reserved_bytes", scale=GIB),
        "aux_loss": Reading("load_balancing_loss"),
        "load_balancing_loss": Reading("load_balancing_loss"),
        "train_speed(iter/s)": Reading("logged_steps_per_second"),
        "train_speed(s/it)": Reading("logged_seconds_per_step"),
        "tokens_per_gpu_per_sec": Reading("logged_tokens_per_second_per_device"),
        "tokens_global_per_sec": Reading("logged_tokens_per_second"),
    },
    ignored=frozenset(
        {
            "acc",
            "token_acc",
            "percentage",
            "remaining_time",
            "tokens_this_step",
            "kl",
            "reward",
            "reward_std",
            "nll_loss",
            "episode",
        }
    ),
    ignored_patterns=(r"[^/]+/.*", r"\w*(?:loss|acc)\w*"),
    required=("step",),
    companions=(
        *(
            Companion(marker, rf"{_PLAN}/(?P<train_steps>\d+)")
            for marker in ("global_step/max_steps", "iteration': '", 'iteration": "')
        ),
        SKIPPED_UPDATES,
    ),
    records=(
        *(evaluation(f"{q}eval_loss{q}: ", rf"{q}eval_loss{q}: '?(?P<loss>{NUMBER})", "eval") for q in "'\""),
        *(
            Record(
                "timers", f"{q}eval_runtime{q}: ", rf"{q}(?P<name>eval_runtime){q}: '?(?P<max_ms>{NUMBER})", scale=1000
            )
            for q in "'\""
        ),
    ),
    sentences=(
        *SUMMARY,
        SettingSentence(
            "launch", "local_world_size: ", r"rank: -?\d+, local_rank: -?\d+, world_size: (?P<world_size>\d+),"
        ),
        *HF_ARGUMENT_SENTENCES,
        *PEFT_SENTENCES,
        # GRPO and its like: a step is generation and rewards too, of which no formula counts the work.
        SettingSentence("step", "reward_std", r"['\"](?P<generates>reward_std)['\"]: ", first=True),
        SettingSentence(
            "step", "objective/rlhf_reward", r"['\"](?P<generates>objective/rlhf_reward)['\"]: ", first=True
        ),
        *PREFERENCE_SENTENCES,
        SettingSentence(
            "lengths", "Dataset Token Length: ", r"Dataset Token Length: [\d.]+±(?P<spread>[\d.]+),", first=True
        ),
    ),
    blocks=(
        HF_ARGUMENTS,
        Block(
            kind="model",
            marker="config=",
            start=r"model_info: ModelInfo\(.*\bconfig=\w+Config \{\s*$",
            end=r"^\}",
            entry=HF_CONFIG.entry,
            nested=True,
            max_lines=1000,
        ),
    ),
    names=(
        *HF_NAMES,
        Name("world_size", "launch:world_size"),
        Name("micro_batch_size", "training arguments:per_device_train_batch_size"),
        Name("num_microbatches", "training arguments:gradient_accumulation_steps"),
        Name("context_parallel_size", "training arguments:sequence_parallel_size"),
        *PEFT_NAMES,
    ),
    choices=(
        Choice("mixed_step", "rollouts", {"step:generates": ".+"}),
        *PREFERENCE_CHOICES,
        *algorithm_choices("training arguments:rlhf_type"),
        *PEFT_CHOICES,
        # Samples of different lengths: max_length is the most that one has.
        Choice("variable_seq_lengths", "True", {"lengths:spread": r"\d*\.?\d*[1-9]\d*"}),
        *(Choice(name, "1", {"training arguments:sequence_parallel_size": r"\d+"}) for name in _NOT_PARALLEL),
        *HF_CHOICES,
        *HF_ARGUMENT_CHOICES,
    ),
    samples=(
        Sample(
            SKIPPED_UPDATE
            + "{'loss': '2.714', 'grad_norm': '69', 'learning_rate': '8e-08', 'token_acc': '0.5344', 'epoch': '0.0004', "
            "'global_step/max_steps': '2/2353', 'elapsed_time': '1h 0m 8s', 'remaining_time': '2h 33m 26s', "
            "'tokens_per_gpu_per_sec': '276.6', 'tokens_global_per_sec': '2212', 'tokens_this_step': 2166, "
            "'memory(GiB)': '64.5', 'train_speed(s/it)': '3.916'}\n"
            "Train:   0%|          | 2/2353 [1:00:08<12:33:26, 20.04s/it]",
            {
                "skipped_iterations": 1,
                "step": 2,
                "train_steps": 2353,
                "loss": 2.714,
                "grad_norm": 69.0,
                "learning_rate": 8e-08,
                "epochs_done": 0.0004,
                "runtime_seconds": 3608.0,
                "logged_seconds_per_step": 3.916,
                "logged_tokens_per_second_per_device": 276.6,
                "logged_tokens_per_second": 2212.0,
                "max_memory_reserved_bytes": 64.5 * GIB,
            },
        ),
        Sample(
            "{'loss': 0.51, 'grad_norm': 1.75, 'learning_rate': 9e-08, 'load_balancing_loss': 1.25, "
            "'iteration': '5/800', 'elapsed_time': '9m 40s', 'memory(GiB)': 64.5, 'train_speed(s/it)': 116.25}\n"
            "Train:   1%|          | 5/800 [09:40<25:40:18, 116.25s/it]",
            {
                "step": 5,
                "train_steps": 800,
                "loss": 0.51,
                "grad_norm": 1.75,
                "learning_rate": 9e-08,
                "load_balancing_loss": 1.25,
                "runtime_seconds": 580.0,
                "logged_seconds_per_step": 116.25,
                "max_memory_reserved_bytes": 64.5 * GIB,
            },
        ),
        Sample(
            '{"loss": 0.75, "iteration": "10/800", "elapsed_time": "17m 17s", "train_speed(s/it)": 103.5}\n'
            "Train:   1%|▏         | 10/800 [17:17<22:42:45, 103.5s/it]",
            {
                "step": 10,
                "train_steps": 800,
                "loss": 0.75,
                "runtime_seconds": 1037.0,
                "logged_seconds_per_step": 103.5,
            },
        ),
        Sample(
            "{'eps': 0, 'objective/kl': '3.25', 'objective/rlhf_reward': '2.5', 'lr': '5e-06', 'episode': 16, "
            "'epoch': '1.6', 'global_step/max_steps': '2/3', 'elapsed_time': '6m 42s', 'train_speed(s/it)': '201.1'}",
            {
                "step": 2,
                "train_steps": 3,
                "learning_rate": 5e-06,
                "epochs_done": 1.6,
                "runtime_seconds": 402.0,
                "logged_seconds_per_step": 201.1,
            },
        ),
        Sample(
            "{'loss': 1.21875, 'acc': 0.701, 'learning_rate': 3e-07, 'epoch': 0.01, 'global_step': 5}",
            {"step": 5, "loss": 1.21875, "learning_rate": 3e-07, "epochs_done": 0.01},
        ),
        Sample(
            '{"loss": 3.94745, "grad_norm": 2.0992, "learning_rate": 9.987e-05, "token_acc": 0.552, "epoch": 0.0228, '
            '"global_step/max_steps": "10/438", "percentage": "2.28%", "elapsed_time": "51s", '
            '"remaining_time": "36m 53s", "memory(GiB)": 16.5, "train_speed(iter/s)": 0.193342}',
            {
                "step": 10,
                "train_steps": 438,
                "loss": 3.94745,
                "grad_norm": 2.0992,
                "learning_rate": 9.987e-05,
                "epochs_done": 0.0228,
                "runtime_seconds": 51.0,
                "logged_steps_per_second": 0.193342,
                "max_memory_reserved_bytes": 16.5 * GIB,
            },
        ),
    ),
)
