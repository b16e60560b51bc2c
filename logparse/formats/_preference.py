"""Training on preferences: DPO, KTO, ORPO, SimPO, CPO and reward models.

A step trains on a chosen and a rejected answer, and most of them ask a second model, so that no formula counts its work.
"""

from __future__ import annotations

from logparse.formats._base import Choice, SettingSentence

PREFERENCE = "preference training"
# What the frameworks call the algorithm of such a training, and of one that generates.
PREFERENCE_ALGORITHMS = "'?(?:dpo|ipo|kto|orpo|simpo|cpo|rm|prm)'?"
ROLLOUT_ALGORITHMS = "'?(?:ppo|grpo|gkd|ray_ppo|trl_ppo|ray_grpo|ray_online_dpo)'?"

# Rewards of both answers, on a step line.
PREFERENCE_SENTENCES = (
    SettingSentence("step", "rewards/chosen", r"(?P<preferences>rewards/chosen)['\"]?:", first=True),
)
PREFERENCE_CHOICES = (Choice("mixed_step", PREFERENCE, {"step:preferences": ".+"}),)


def algorithm_choices(setting: str) -> tuple[Choice, ...]:
    """What a step is where a ``setting`` names the algorithm."""
    return (
        Choice("mixed_step", PREFERENCE, {setting: PREFERENCE_ALGORITHMS}),
        Choice("mixed_step", "rollouts", {setting: ROLLOUT_ALGORITHMS}),
    )
