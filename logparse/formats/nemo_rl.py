"""NeMo-RL 0.3 to 0.5, reinforcement learning: ``= Step 3/50 =``, then blocks of results, times and rates.

A step has phases (generation, log probabilities, training), which are timers. Rates are by the log's own count of prompts
and answers over the whole step: no MFU is made of a mixed step.
"""

from logparse.formats._base import (
    NUMBER,
    Choice,
    Companion,
    LogFormat,
    PairLines,
    Reading,
    Record,
    Sample,
    SettingSentence,
    event,
)

FORMAT = LogFormat(
    name="nemo-rl",
    title="NeMo-RL",
    framework="NeMo-RL",
    # The timer of a step is around validation and saving. Source: NeMo-RL algorithms/grpo.py.
    pauses_inside=True,
    marker=("= Step ",),
    head=r"=+ Step (?P<step>\d+)/(?P<train_steps>\d+) =+",
    pair="",
    pair_lines=PairLines(
        marker=("• Loss: ", "• Total step time: ", "E (Tokens/sec", "E (Samples/sec"),
        pair=rf"(?:•|-) ((?:Loss|Total step time|E2E \([\w/]+\))): ({NUMBER}s?)\s*$",
    ),
    labels={
        "Loss": Reading("loss"),
        "Total step time": Reading("elapsed_time_per_iteration_ms", scale=1000, suffix="s"),
        "E2E (Tokens/sec/gpu)": Reading("logged_tokens_per_second_per_device"),
        "E2E (Tokens/sec)": Reading("logged_tokens_per_second"),
        "E2E (Samples/sec/gpu)": Reading("logged_samples_per_second_per_device"),
        "E2E (Samples/sec)": Reading("logged_samples_per_second"),
    },
    parts={
        "generation": "generation",
        "exposed_generation": "generation",
        "reward_calculation": "reward",
        "policy_and_reference_logprobs": "reference",
        "policy_training": "update",
        "prepare_for_generation/total": "weights",
        "weight_sync": "weights",
    },
    # Ray's workers print the only clock: vLLM wakes up once a step to generate. Ray prints repeated lines later.
    companions=(
        Companion("to wake up tags", r"(?P<timestamp>\d\d-\d\d \d\d:\d\d:\d\d) .* to wake up tags \['weights'\]\.\s*$"),
    ),
    records=(
        Record("timers", "%)", r"• (?P<name>[a-z][\w/]*): (?P<max_ms>[\d.]+)s \([\d.]+%\)", scale=1000),
        event("save starts", "Saving checkpoint for step", r"Saving checkpoint for step (?P<step>\d+)"),
    ),
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "• Total step time: ", r"(?P<generates>Total step time)", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "========================= Step 3/50 =========================\n"
            "(VllmGenerationWorker pid=11) INFO 02-26 10:20:30 [abstract.py:324] It took 0.1 seconds to wake up tags ['weights'].\n"
            "📊 Training Results:\n"
            "  • Loss: 0.0103\n"
            "  • Avg Reward: 0.3486\n"
            "⏱️  Timing:\n"
            "  • Total step time: 35.70s\n"
            "  • policy_training: 10.97s (30.7%)\n"
            "🔍 Performance Metrics:\n"
            "    - E2E (Samples/sec/gpu): 3.59\n"
            "    - E2E (Tokens/sec/gpu): 1073.59\n"
            "    - Policy Training (Tokens/sec/gpu): 3492.73\n"
            "    - E2E (Samples/sec): 28.68\n"
            "    - E2E (Tokens/sec): 8588.75",
            {
                "timestamp": "1904-02-26T10:20:30",
                "step": 3,
                "train_steps": 50,
                "loss": 0.0103,
                "elapsed_time_per_iteration_ms": 35700.0,
                "logged_samples_per_second_per_device": 3.59,
                "logged_tokens_per_second_per_device": 1073.59,
                "logged_samples_per_second": 28.68,
                "logged_tokens_per_second": 8588.75,
            },
        ),
    ),
)
