"""trlX: its bar, ``[losses/total_loss: 0.60 | losses/value_loss: 0.01]:  91%|███| 116/128 [08:45<00:54,  4.57s/it]``.

A step is an optimizer's update of one batch; between the batches of two rollouts the bar waits for generation, which the
clock holds. The bar shows the loss one step late, so it is not read. DeepSpeed's timer may be next to it.

Source: CarperAI/trlx 0.4 to 0.7, trlx/trainer/accelerate_base_trainer.py, learn.
"""

from logparse.formats._base import BAR_RATE, Choice, LogFormat, Sample, SettingSentence

FORMAT = LogFormat(
    name="trlx",
    title="trlX, its bar",
    framework="trlX",
    traces=(r"\btrlx[/.](?:trainer|pipeline|utils|data|models)\b",),
    pauses_inside=True,
    rate_covers="recent",
    marker=("[losses/", "[loss: "),
    head=(
        r"\[loss(?:es/\w+)?: [^\]\r]*\]: *\d+%\|[^|\r]*\| *(?P<step>[1-9]\d*)/(?P<train_steps>\d+) "
        r"\[(?P<runtime_seconds>[\d:]+)<" + BAR_RATE + r"\]"
    ),
    pair="",
    labels={},
    required=("step",),
    redrawn=True,
    # A step is generation and rewards too, of which no formula counts the work.
    sentences=(SettingSentence("step", "losses/policy_loss", r"losses/(?P<generates>policy_loss)", first=True),),
    choices=(Choice("mixed_step", "rollouts", {"step:generates": ".+"}),),
    samples=(
        Sample(
            "[losses/total_loss: 0.50 | losses/policy_loss: 0.25 | losses/value_loss: 0.25]:  91%|█████████ | 116/128 "
            "[08:45<00:54,  4.50s/it]",
            {"step": 116, "train_steps": 128, "runtime_seconds": 525.0, "logged_seconds_per_step": 4.5},
        ),
    ),
)
