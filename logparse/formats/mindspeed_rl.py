"""MindSpeed-RL 2.0 and later: one line per step, ``iteration: 3 / 100 | timing/all : 45.1 | grad_norm : 0.42 | ...``.

A step has phases (rollout, reference, reward, update), which are timers in seconds, the most over the ranks. ``e2e_tps`` is
tokens of prompts and answers per device over the whole step: no MFU is made of a mixed step.
"""

from logparse.formats._base import NUMBER, Choice, LogFormat, Reading, Record, Sample, SettingSentence

FORMAT = LogFormat(
    name="mindspeed-rl",
    title="MindSpeed-RL",
    framework="MindSpeed-RL",
    marker=("/all : ",),
    head=r"\biteration: (?P<step>\d+) / (?P<train_steps>\d+) \|",
    pair=rf"([A-Za-z][\w/.@-]*) : ({NUMBER})\s*(?:\||$)",
    separator=r"\|",
    labels={
        "timing/all": Reading("elapsed_time_per_iteration_ms", scale=1000),
        "e2e_tps": Reading("logged_tokens_per_second_per_device"),
        "grad_norm": Reading("grad_norm"),
        "actor/grad_norm": Reading("grad_norm"),
        "lr": Reading("learning_rate"),
        "actor/lr": Reading("learning_rate"),
        "actor/pg_loss": Reading("loss"),
        "loss": Reading("loss"),
    },
    ignored=frozenset({"update_tps", "vllm_tps"}),
    # What an algorithm or a reward adds, each with its own name.
    ignored_patterns=(r"[^/]+/.*", r"\w*(?:loss|reward|score|kl|entropy)\w*"),
    records=(
        Record("timers", "timing/all : ", r"timing/(?P<name>[\w/]+) : (?P<max_ms>[\d.]+)", scale=1000, every=True),
    ),
    parts={
        "rollout": "generation",
        "rule_reward": "reward",
        "reward_model": "reward",
        "reference_model": "reference",
        "old_log_p": "log_probs",
        "adv": "advantages",
        "update": "update",
    },
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "timing/rollout : ", r"(?P<generates>timing/rollout) :", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "2025-06-11 10:02:11,204 - INFO - [2025-06-11 02:02:11] iteration: 3 / 100 | timing/all : 212.4051 | "
            "timing/rollout : 101.1153 | timing/update : 62.0178 | actor/pg_loss : 0.0131 | grad_norm : 0.4210 | "
            "lr : 1.000000e-06 | response_length/mean : 812.2500 | e2e_tps : 181.5000 | update_tps : 620.1000 | "
            "vllm_tps : 381.2500 ",
            {
                "timestamp": "2025-06-11T02:02:11",
                "step": 3,
                "train_steps": 100,
                "elapsed_time_per_iteration_ms": 212405.1,
                "loss": 0.0131,
                "grad_norm": 0.421,
                "learning_rate": 1e-06,
                "logged_tokens_per_second_per_device": 181.5,
            },
        ),
    ),
)
