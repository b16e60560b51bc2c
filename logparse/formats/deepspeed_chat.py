"""DeepSpeed-Chat, step 3 (RLHF): ``epoch: 0|step: 3|ppo_ep: 1|act_loss: 0.31|...``, then ``|E2E latency=3.87s |...``.

Steps count from 0 in each epoch. From August 2023 on the first line is ``Epoch: 0 | Step: 3 | PPO Epoch: 1 | ...``, and
``End-to-End => Latency: 2.55s`` follows. ``E2E latency`` is of the hybrid engine alone: from one generation to the next
one, printed before that. It is preferred, because ``End-to-End`` leaves out the rewards. The lines of the engines below
are of the training of one model. A step with several generation batches has ``E2E latency`` of the first of them.

Source: microsoft/DeepSpeedExamples, DeepSpeed-Chat's step3_rlhf_finetuning/main.py and dschat/utils/perf.py;
deepspeedai/DeepSpeed, deepspeed/runtime/hybrid_engine.py, eval.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Name, Reading, Record, Sample, SettingSentence
from logparse.formats._deepspeed import BLOCKS, CHOICES, RECORDS, SENTENCES, SKIPPED_UPDATE, SKIPPED_UPDATES

_HYBRID, _PRINTED = "|E2E latency=", "End-to-End => Latency: "
_ACTOR = "--actor_model_name_or_path"
_MICRO, _ACCUMULATED = "--per_device_training_batch_size", "--gradient_accumulation_steps"
_TIME = r"(?P<logged_seconds_per_step>[\d.]+)s"
_RATE = rf"(?P<logged_samples_per_second>{NUMBER})"

FORMAT = LogFormat(
    name="deepspeed-chat",
    title="DeepSpeed-Chat (RLHF)",
    framework="DeepSpeed-Chat",
    rate_covers="step",
    marker=("|ppo_ep: ", "| PPO Epoch: "),
    head=r"\b[Ee]poch: (?P<epoch>\d+) ?\| ?[Ss]tep: (?P<step_in_epoch>\d+) ?\| ?(?:ppo_ep|PPO Epoch): \d+ ?\| ?",
    pair=r"(\w[\w ]*): ([^|\s]+)(?: ?\| ?|\s|$)",
    separator=r"\|",
    labels={"act_loss": Reading("loss"), "Actor Loss": Reading("loss")},
    ignored=frozenset({"cri_loss", "unsuper_loss", "Critic Loss", "Unsupervised Loss"}),
    required=("step_in_epoch",),
    first_epoch=0,
    from_zero=True,
    parts={
        **dict.fromkeys(("Generate time", "Generation"), "generation"),
        **dict.fromkeys(("Training time", "Training"), "update"),
    },
    companions=(
        # Of the actor or of the critic.
        SKIPPED_UPDATES,
        Companion(_HYBRID, rf"\|E2E latency={_TIME} (?:.*\|CurSamplesPerSec={_RATE})?"),
        # With another data set for language modelling, its size of the batch is always 2, which the rate is made of.
        Companion(_PRINTED, rf"{_PRINTED}{_TIME}(?:.*, Samples/sec: {_RATE}, .*Batch Size: (?:[013-9]|\d\d+),)?"),
        Companion(
            "Total Generation Batches ",
            r"Beginning of Epoch \d+/(?P<epochs>\d+), Total Generation Batches (?P<steps_per_epoch>\d+)",
            belongs_to="file",
        ),
    ),
    records=(
        *RECORDS,
        Record(
            "timers",
            _HYBRID,
            r"\|(?P<name>Gather latency|Generate time|Training time)=(?P<max_ms>[\d.]+)s",
            scale=1000,
            every=True,
        ),
        Record(
            "timers", " => Latency: ", r"\b(?P<name>Generation|Training) +=> Latency: (?P<max_ms>[\d.]+)s", scale=1000
        ),
    ),
    blocks=BLOCKS,
    sentences=(
        *SENTENCES,
        # A folder without a number is no model's name.
        SettingSentence("actor", f"{_ACTOR} ", rf"{_ACTOR} (?:\S*/)?(?=[^/\s]*\d)(?P<model_name>[^/\s]+)(?:\s|$)"),
        SettingSentence("actor", f"{_MICRO} ", rf"{_MICRO} (?P<batch_size_per_device>\d+)"),
        SettingSentence("actor", f"{_ACCUMULATED} ", rf"{_ACCUMULATED} (?P<accumulation_steps>\d+)"),
        SettingSentence("actor", "--actor_lora_dim ", r"--actor_lora_dim (?P<lora_dim>\d+)"),
        # A step is generation and rewards too, of which no formula counts the work.
        SettingSentence("step", "|ppo_ep: ", r"\|(?P<generates>ppo_ep): ", first=True),
        SettingSentence("step", "| PPO Epoch: ", r"\| (?P<generates>PPO Epoch): ", first=True),
    ),
    # The sizes are of the engines of several models; no pipeline and no tensor parallel ranks are in it.
    names=(
        Name("world_size", "engine:world_size"),
        Name("model_name", "actor:model_name"),
        Name("batch_size_per_device", "actor:batch_size_per_device"),
        Name("num_microbatches", "actor:accumulation_steps"),
    ),
    choices=(
        Choice("mixed_step", "rollouts", {"step:generates": ".+"}),
        Choice("lora", "True", {"actor:lora_dim": r"[1-9]\d*"}),
        *CHOICES,
    ),
    samples=(
        Sample(
            SKIPPED_UPDATE + "epoch: 0|step: 3|ppo_ep: 1|act_loss: 0.3125|cri_loss: 0.205|unsuper_loss: 0.0\n"
            "average reward score: 0.25\n"
            "|E2E latency=3.87s |Gather latency=0.00s (0.00%) |Generate time=2.52s (65.07%) |Training time=1.12s (28.87%) "
            "|Others=0.23 (6.06%)|CurSamplesPerSec=16.55 |AvgSamplesPerSec=13.13",
            {
                "epoch": 0,
                "step_in_epoch": 3,
                "step": 3,
                "skipped_iterations": 1,
                "loss": 0.3125,
                "logged_seconds_per_step": 3.87,
                "logged_samples_per_second": 16.55,
            },
        ),
        Sample(
            "Beginning of Epoch 1/2, Total Generation Batches 477\n"
            "Epoch: 0 | Step: 8 | PPO Epoch: 1 | Actor Loss: -0.0125 | Critic Loss: 0.0201 | Unsupervised Loss: 0.0\n"
            "End-to-End => Latency: 2.50s, TFLOPs: 3.29, Samples/sec: 1.60, Time/seq 0.62s, Batch Size: 4, "
            "Total Seq. Length: 512\n"
            "Generation => Latency: 1.75s, Per-token Latency 6.84 ms, TFLOPs: 0.85, BW: 113.40 GB/sec, "
            "Answer Seq. Length: 256\n"
            "Training   => Latency: 0.75s, TFLOPs: 8.85",
            {
                "epoch": 0,
                "epochs": 2,
                "step_in_epoch": 8,
                "steps_per_epoch": 477,
                "step": 8,
                "train_steps": 954,
                "loss": -0.0125,
                "logged_seconds_per_step": 2.5,
                "logged_samples_per_second": 1.6,
            },
        ),
    ),
)
