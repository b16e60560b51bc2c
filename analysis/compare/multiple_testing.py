"""Several metrics are several tests: the chance that any of them is wrong stays below a limit.

Comes in: the findings on the metrics other than the first. Goes out: the findings with the adjusted p of each.

The first metric has its own 5 %, because three runs a side reach no less. The others share 5 % by the step-down
procedure of Holm (Scandinavian Journal of Statistics 6, 1979), which allows any dependence between them. A test that
can prove nothing, since all its numbers are equal, does not count (Tarone, Biometrics 46, 1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.compare.verdict import CLOSE, Finding
from analysis.stats.noise import LEVEL


def hold_family(findings: Sequence[Finding]) -> list[Finding]:
    """``findings`` with ``p_family``; one that is proven by itself alone is suspicious."""
    held = step_down([_p(finding) for finding in findings])
    return [_held(finding, p) for finding, p in zip(findings, held, strict=True)]


def step_down(ps: Sequence[float | None]) -> list[float | None]:
    """Each p by Holm's procedure, as many times as large as tests are left; None where there is no test."""
    held: dict[int, float] = {}
    worst = 0.0
    tests = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    for rank, (p, place) in enumerate(tests):
        worst = max(worst, min(1.0, p * (len(tests) - rank)))
        held[place] = worst
    return [held.get(place) for place in range(len(ps))]


def _p(finding: Finding) -> float | None:
    """The p that a regression rests on; None where there is no test, or one that can prove nothing."""
    if finding.p_lost is not None:
        return finding.p_lost
    effect = finding.rest.effect if finding.rest and finding.reason == "proven_without" else finding.effect
    if effect is None or effect.p_worse is None or effect.p_worse == effect.p_better == 1:
        return None
    return effect.p_worse


def _held(finding: Finding, p: float | None) -> Finding:
    with_p = replace(finding, p_family=p)
    by_evidence = with_p.reason in ("proven", "proven_without", "loss_lost")
    if with_p.verdict != "regression" or not by_evidence or p is None or p <= LEVEL + CLOSE:
        return with_p
    # All runs of the candidate have lost their loss: that is no matter of luck.
    if with_p.reason == "loss_lost" and with_p.effect is None:
        return with_p
    return replace(with_p, verdict="suspicious", reason="one_of_many", before=None)
