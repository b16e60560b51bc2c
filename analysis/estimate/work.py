"""Operations, time and devices of a whole training, by the sources' rules and by the FLOPs formula of the project.

Comes in: parameters, tokens, devices, a peak in TFLOP/s and the share of it that is executed (HFU). Goes out: figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analysis.estimate.parameter_figures import ARTICLE, CHEAT_SHEET
from analysis.estimate.worked_figure import Figure, Number, work_out
from analysis.flops import Formula, Recompute
from analysis.model.shape import ModelShape
from logparse.language import msg, tr
from logparse.schema import flag_of

# What clusters of over 100 cards reach, as the article says.
USUAL_UTILISATION = (0.30, 0.50)
DAY = 86400
SIX = msg("6 P n of the cheat sheet; the article takes 8 P n, as with full recomputation")


@dataclass(frozen=True)
class Work:
    """What is to be computed, on what. ``parameters`` are those a token meets; None is unknown."""

    parameters: Number | None
    tokens: int | None
    devices: int | None
    peak_tflops: float | None
    utilisation: float | None
    recompute: Recompute = "none"

    @property
    def passes(self) -> int:
        """8 P n with full recomputation, 6 P n without; the cheat sheet has no rule between the two."""
        return 8 if self.recompute == "full" else 6


def flops_figures(work: Work, shape: ModelShape, formula: Formula, seq_length: int) -> tuple[Figure, ...]:
    """FLOPs per token and of the whole training: the rule, then the formula."""
    exact = flops_per_token(shape, formula, seq_length, work.recompute)
    rule, whole = msg("FLOPs per token, rule"), msg("FLOPs of the training, by formula")
    return (
        work_out("flops_per_token_rule", rule, "FLOPs", f"{work.passes} * P", CHEAT_SHEET, P=work.parameters),
        exact,
        total_flops(work),
        work_out("flops", whole, "FLOPs", "F * n", formula.source, F=exact, n=work.tokens),
    )


def flops_per_token(shape: ModelShape, formula: Formula, seq_length: int, recompute: Recompute) -> Figure:
    """FLOPs per token by the formula's terms; those that recomputation runs again have their third more."""
    label = msg("FLOPs per token, by formula")
    terms = formula.terms_per_token(shape, seq_length)
    if terms is None:
        lacks = tuple(flag_of(name) or name for name in formula.missing(shape))
        return Figure("flops_per_token", label, "FLOPs", None, formula.text, "", formula.source, lacks)
    again = {"none": (), "selective": formula.selective, "full": formula.full}[recompute]
    times = {name: "4/3 x " if name in again else "" for name in terms}
    worked = " + ".join(f"{times[name]}{value:.6g} ({tr(name)})" for name, value in terms.items() if value)
    value = formula.hardware_flops_per_token(shape, seq_length, recompute)
    return Figure("flops_per_token", label, "FLOPs", value, formula.text, worked, formula.source)


def total_flops(work: Work) -> Figure:
    """6 P n, or 8 P n where everything is recomputed."""
    label, formula = msg("FLOPs of the training, rule"), f"{work.passes} * P * n"
    return work_out("flops_rule", label, "FLOPs", formula, CHEAT_SHEET, P=work.parameters, n=work.tokens)


def training_time(work: Work, name: str = "training_time_rule") -> Figure:
    """Seconds for all tokens at the given utilisation; the article takes 8 P n, as with full recomputation."""
    formula = f"{work.passes} * n * P / (devices * peak * 1e12 * utilisation)"
    label = msg("training time, rule")
    given = _given(work) | {"P": work.parameters, "devices": work.devices}
    return work_out(name, label, "s", formula, _rule_of(work), **given)


def devices_for(work: Work, seconds: float | None) -> Figure:
    """Whole devices that finish within ``seconds`` by the rule."""
    formula = f"ceil({work.passes} * n * P / (seconds * peak * 1e12 * utilisation))"
    label = msg("devices for the deadline, rule")
    given = _given(work) | {"P": work.parameters, "seconds": seconds}
    return work_out("devices_for_deadline", label, "devices", formula, _rule_of(work), **given)


def _rule_of(work: Work) -> str:
    return ARTICLE if work.recompute == "full" else SIX


def time_figures(work: Work, per_token: Figure) -> tuple[Figure, ...]:
    """Training time by the rule and by the formula; without a utilisation at both ends of what is usual."""
    label, formula = msg("training time, by formula"), "F * n / (devices * peak * 1e12 * utilisation)"
    figures = []
    for suffix, at in _utilisations(work):
        given = _given(at) | {"devices": at.devices}
        figures.append(training_time(at, f"training_time_rule{suffix}"))
        figures.append(work_out(f"training_time{suffix}", label, "s", formula, per_token.source, F=per_token, **given))
    return tuple(figures)


def deadline_figures(work: Work, seconds: float, per_token: Figure) -> tuple[Figure, ...]:
    """Devices for a deadline by the rule and by the formula; without a utilisation at both ends of what is usual."""
    label, formula = msg("devices for the deadline, by formula"), "ceil(F * n / (seconds * peak * 1e12 * utilisation))"
    figures = []
    for suffix, at in _utilisations(work):
        name, given = f"devices_for_deadline_by_formula{suffix}", _given(at) | {"seconds": seconds}
        figures.append(replace(devices_for(at, seconds), name=f"devices_for_deadline{suffix}"))
        figures.append(work_out(name, label, "devices", formula, per_token.source, F=per_token, **given))
    return tuple(figures)


def _utilisations(work: Work) -> Sequence[tuple[str, Work]]:
    if work.utilisation is not None or work.tokens is None:
        return [("", work)]
    return [(f"_at_{share * 100:.0f}_percent", replace(work, utilisation=share)) for share in USUAL_UTILISATION]


def _given(work: Work) -> dict[str, Number | None]:
    return {"n": work.tokens, "peak": work.peak_tflops, "utilisation": work.utilisation}
