"""Operations, time and devices of a whole training, by the sources' rules and by the FLOPs formula of the project.

Comes in: parameters, tokens, devices, a peak in TFLOP/s and the share of it that is executed (HFU). Goes out: figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from analysis.estimate.assumptions import ARTICLE, CHEAT_SHEET, SIX_PASSES
from analysis.estimate.worked_figure import Figure, Number, Term, work_out
from analysis.flops import Formula, Recomputation, Recompute
from analysis.model.shape import ModelShape
from logparse.light_dataclass import dataclass, replace
from logparse.schema import flag_of

# What clusters of over 100 cards reach, as the article says.
TYPICAL_UTILISATION = (0.30, 0.50)
DAY = 86400


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


def flops_figures(work: Work, exact: Figure) -> tuple[Figure, ...]:
    """FLOPs per token and of the whole training: the rule, then ``exact`` by the formula."""
    return (
        work_out("flops_per_token_rule", "FLOPs", f"{work.passes} * P", CHEAT_SHEET, P=work.parameters),
        exact,
        total_flops(work),
        work_out("flops", "FLOPs", "F * n", exact.source, F=exact, n=work.tokens),
    )


def flops_per_token(
    shape: ModelShape, formula: Formula, seq_length: int, recompute: Recompute | Recomputation
) -> Figure:
    """FLOPs per token by the formula's terms; what recomputation runs again has a third more."""
    figure = Figure("flops_per_token", "flops_per_token", "FLOPs", None, formula.text, "", formula.source)
    terms, again = (
        formula.terms_per_token(shape, seq_length),
        formula.again_per_token(shape, seq_length, recompute),
    )
    if terms is None or again is None:
        return replace(figure, missing=tuple(flag_of(name) or name for name in formula.missing(shape)))
    counted = tuple(Term(name, value, 3 * again.get(name, 0.0) / value) for name, value in terms.items() if value)
    return replace(figure, value=formula.hardware_flops_per_token(shape, seq_length, recompute), terms=counted)


def total_flops(work: Work) -> Figure:
    """6 P n, or 8 P n where everything is recomputed."""
    formula = f"{work.passes} * P * n"
    return work_out("flops_rule", "FLOPs", formula, CHEAT_SHEET, P=work.parameters, n=work.tokens)


def training_time(work: Work) -> Figure:
    """Seconds for all tokens at the given utilisation; the article takes 8 P n, as with full recomputation."""
    formula = f"{work.passes} * n * P / (devices * peak * 1e12 * utilisation)"
    given = _given(work) | {"P": work.parameters, "devices": work.devices}
    return work_out("training_time_rule", "s", formula, _rule_of(work), **given)


def devices_for(work: Work, seconds: float | None) -> Figure:
    """Whole devices that finish within ``seconds`` by the rule."""
    formula = f"ceil({work.passes} * n * P / (seconds * peak * 1e12 * utilisation))"
    given = _given(work) | {"P": work.parameters, "seconds": seconds}
    return work_out("devices_for_deadline", "devices", formula, _rule_of(work), **given)


def _rule_of(work: Work) -> str:
    return ARTICLE if work.recompute == "full" else SIX_PASSES


def time_figures(work: Work, per_token: Figure) -> tuple[Figure, ...]:
    """Training time by the rule and the formula; without a utilisation at both ends of the typical range."""
    formula = "F * n / (devices * peak * 1e12 * utilisation)"

    def by_formula(work: Work) -> Figure:
        given = _given(work) | {"devices": work.devices}
        return work_out("training_time", "s", formula, per_token.source, F=per_token, **given)

    return _at_utilisations(work, lambda at: (training_time(at), by_formula(at)))


def deadline_figures(work: Work, seconds: float, per_token: Figure) -> tuple[Figure, ...]:
    """Devices for a deadline by the rule and the formula; without a utilisation at both ends of the typical range."""
    formula = "ceil(F * n / (seconds * peak * 1e12 * utilisation))"

    def by_formula(work: Work) -> Figure:
        given = _given(work) | {"seconds": seconds}
        name = "devices_for_deadline_by_formula"
        return work_out(name, "devices", formula, per_token.source, F=per_token, **given)

    return _at_utilisations(work, lambda at: (devices_for(at, seconds), by_formula(at)))


def _at_utilisations(work: Work, figures: Callable[[Work], Iterable[Figure]]) -> tuple[Figure, ...]:
    """``figures`` at the given utilisation, or at each typical one with that in their names."""
    if work.utilisation is not None or work.tokens is None:
        return tuple(figures(work))
    return tuple(
        replace(figure, name=f"{figure.name}_at_{share * 100:.0f}_percent")
        for share in TYPICAL_UTILISATION
        for figure in figures(replace(work, utilisation=share))
    )


def _given(work: Work) -> dict[str, Number | None]:
    return {"n": work.tokens, "peak": work.peak_tflops, "utilisation": work.utilisation}
