"""ROLL, reinforcement learning, distillation, preferences, fine-tuning: ``pipeline step 4 finished``, counted from 0.

Fine-tuning, preferences and distillation print the seconds of the step in the dict of metrics on a line before, without
saves and evaluations. In reinforcement learning that dict has the time of the step before it, or none, so the stamps of
whole seconds give the time, a save between two lines included.

Source: alibaba/ROLL, roll/pipeline/*/*_pipeline.py and roll/utils/logging.py.
"""

from logparse.formats._base import NUMBER, Choice, Companion, LogFormat, Name, Record, Sample, SettingSentence, event

# What precedes the time of a step in the dict of each pipeline that prints it: fine-tuning, distillation, preferences.
_TIMES = {
    "'time/step_train': ": "'time/step_train': ",
    '"train/step_train": ': '"train/step_train": ',
    '"time/actor_train": ': '"time/actor_train": .*"time/step_total": ',
}
# On four lines, of which the first has the stamp.
_BATCH = {
    "data_parallel_size": "data parallel size",
    "num_microbatches": "gradient accumulation steps",
    "micro_batch_size": "per device train batch size",
    "global_batch_size": "global train batch size",
}


def _timer(name: str, marker: str, label: str) -> Record:
    pattern = rf"""['"]{label}['"]: (?P<max_ms>{NUMBER})"""
    return Record("timers", marker, pattern, fixed={"name": name}, scale=1000)


FORMAT = LogFormat(
    name="roll",
    title="ROLL",
    framework="ROLL",
    traces=(r"\broll[/.](?:pipeline|distributed|utils)\b",),
    pauses_inside=False,
    rate_covers="step",
    marker=("pipeline step ",),
    # The newest SFT pipeline prints three dots.
    head=r"\[PID \d+\] pipeline step (?P<step>\d+) finished(?:\.\.\.)?\s*$",
    pair="",
    from_zero=True,
    labels={},
    required=("step",),
    companions=(
        *(
            Companion(marker, rf"{printed}(?P<logged_seconds_per_step>{NUMBER})", belongs_to="next")
            for marker, printed in _TIMES.items()
        ),
        Companion(", step=", r", step=\d+/(?P<train_steps>\d+)\]", belongs_to="file"),
    ),
    records=(
        event("training ends", "pipeline complete!", r"\] pipeline complete!\s*$"),
        _timer("eval-time", "time/val", "time/val(?:_step)?"),
        _timer("save-checkpoint", "do_checkpoint/total", "time/[^'\"]*do_checkpoint/total"),
    ),
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(
        *(
            SettingSentence("step", f'"time/{name}"', rf'"time/(?P<generates>{name})"', first=True)
            for name in ("step_generate", "step_rollout")
        ),
        *(
            SettingSentence("batch", f"{printed} = ", rf"(?:^|\] ){printed} = (?P<{name}>\d+),?\s*$")
            for name, printed in _BATCH.items()
        ),
    ),
    names=(
        *(Name(name, f"batch:{name}") for name in _BATCH),
        Name("batch_size_per_device", "batch:micro_batch_size"),
    ),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "[2026-03-02 10:20:31] [sft_pipeline.py (225)] [INFO] [DRIVER 0 / 1][PID 4242] "
            "metrics: {'global_seqlen/mean': 512.0, 'time/step_train': 2.6125}\n"
            "Epoch 0/1:  14%|#4        | 6/41 [00:40<03:56,  6.76s/it, loss=2.4300, step=6/41]\n"
            "[2026-03-02 10:20:32] [sft_pipeline.py (240)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 6 finished...",
            {"timestamp": "2026-03-02T10:20:32", "step": 6, "train_steps": 41, "logged_seconds_per_step": 2.6125},
        ),
        Sample(
            "[2026-03-02 10:20:31] [dpo_pipeline.py (254)] [INFO] [DRIVER 0 / 1][PID 4242] "
            '{"time/cal_ref_log_probs": 0.75, "time/actor_train": 2.5, "time/step_total": 3.25}\n'
            "[2026-03-02 10:20:31] [dpo_pipeline.py (256)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 7 finished",
            {"timestamp": "2026-03-02T10:20:31", "step": 7, "logged_seconds_per_step": 3.25},
        ),
        Sample(
            "[2026-03-02 10:20:31] [distill_pipeline.py (331)] [INFO] [DRIVER 0 / 1][PID 4242] "
            '{"train/teacher_forward": 0.75, "train/student_train_step": 2.5, "train/step_train": 3.5}\n'
            "[2026-03-02 10:20:31] [distill_pipeline.py (333)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 7 finished",
            {"timestamp": "2026-03-02T10:20:31", "step": 7, "logged_seconds_per_step": 3.5},
        ),
        Sample(
            "[2026-03-02 10:20:30] [rlvr_pipeline.py (840)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 4 finished",
            {"timestamp": "2026-03-02T10:20:30", "step": 4},
        ),
        Sample(
            "[2026-03-02 10:20:31] [sft_pipeline.py (240)] [INFO] [DRIVER 0 / 1][PID 4242] pipeline step 5 finished...",
            {"timestamp": "2026-03-02T10:20:31", "step": 5},
        ),
    ),
)
