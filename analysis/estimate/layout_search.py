"""Which layouts fit into a device's memory, and the smallest that does.

Comes in: a counted model, what is fixed of the layout, how a step is done, the memory. Goes out: one row per
layout, the one that splits the model least first, because splitting costs time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from analysis.estimate.device_layout import Layout, Training, check_layout
from analysis.estimate.stages import Stage, estimate_stages
from analysis.model.parameters import NO_DETAILS, Details, Parameters
from analysis.model.shape import ModelShape
from logparse.errors import UsageError
from logparse.light_dataclass import dataclass, replace

# Devices of one node in all systems of the sources; tensor parallelism stays inside it.
NODE = 8
# The search goes no further unless the user has more; the largest published runs used about as many.
MOST_DEVICES = 16384


@dataclass(frozen=True)
class Fixed:
    """What the user decided of the layout; None is free. ``ep`` None tries powers of two."""

    devices: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int = 1
    ep: int | None = None
    vpp: int = 1
    zero: int | None = None
    sequence_parallel: bool = False
    etp: int | None = None
    uneven: bool = False

    @property
    def freed(self) -> Fixed:
        """The same with the split of the model free; what cuts the sequence stays."""
        return Fixed(cp=self.cp, sequence_parallel=self.sequence_parallel)


@dataclass(frozen=True)
class Fit:
    """A layout with its stages; ``fits`` is None where the memory of the device is unknown."""

    layout: Layout
    stages: tuple[Stage, ...]
    memory_bytes: float | None

    @property
    def worst(self) -> Stage:
        """The stage that needs most."""
        return max(self.stages, key=lambda stage: stage.total_bytes)

    @property
    def overflows(self) -> tuple[int, ...]:
        """Numbers of the stages that need more than there is."""
        limit = self.memory_bytes
        return () if limit is None else tuple(s.stage for s in self.stages if s.total_bytes > limit)

    @property
    def fits(self) -> bool | None:
        """Whether every stage fits."""
        return None if self.memory_bytes is None else not self.overflows


@dataclass(frozen=True)
class Search:
    """The model and step that layouts are tried for."""

    shape: ModelShape
    counted: Parameters
    vocab_size: int
    training: Training
    memory_bytes: float | None
    details: Details = NO_DETAILS

    def fit(self, layout: Layout) -> Fit:
        """Stages of one layout. Raises UsageError for one that cannot be run."""
        check_layout(self.shape, layout, self.training)
        stages = estimate_stages(self.shape, self.counted, self.vocab_size, layout, self.training, self.details)
        return Fit(layout, stages, self.memory_bytes)


def all_fits(search: Search, fixed: Fixed, devices: int, zeros: Sequence[int] = (0, 1)) -> tuple[Fit, ...]:
    """Every layout on ``devices`` that agrees with ``fixed`` and can be run; least split first, then fewest stages.

    ``zeros`` are tried where ``fixed`` has none.
    """
    fits = []
    for split in _splits(search, fixed):
        dp, rest = divmod(devices, split.devices)
        if rest or not dp or fixed.dp not in (None, dp):
            continue
        # With one data-parallel rank there is nothing to share out.
        tried = (zeros if dp * split.cp > 1 else (0,)) if fixed.zero is None else (fixed.zero,)
        fits += [_try(search, replace(split, dp=dp, zero=zero)) for zero in tried]
    return tuple(sorted((f for f in fits if f), key=lambda f: (*_cost(f.layout), f.layout.zero)))


def smallest_fit(search: Search, fixed: Fixed) -> Fit | None:
    """The layout that fits on the fewest devices, among those the least split; None where none does.

    A number of devices and a data-parallel size that the user gave say how many there are, not how many are needed, so
    they do not bind here. None too where the memory is unknown.
    """
    if search.memory_bytes is None:
        return None
    best, most = None, max(MOST_DEVICES, min(fixed.devices or 0, 2**20))
    divisors = _divisors(search.training, most)
    splits = (shared for split in _splits(search, fixed) for shared in _expert_shares(split))
    for split in sorted(splits, key=_cost):
        fit = _fewest(search, split, fixed.zero, _copies(split, search.training, divisors, most))
        if fit:
            best, most = fit, fit.layout.devices - 1
    return best


def _fewest(search: Search, split: Layout, zero: int | None, copies: Sequence[int]) -> Fit | None:
    """``split`` with the fewest copies that fit: more copies, and a higher ZeRO, never need more memory."""
    zeros = (0, 1, 2, 3) if zero is None else (zero,)

    def fits(dp: int, zero: int = zeros[-1]) -> bool:
        fit = _try(search, replace(split, dp=dp, zero=zero))
        return bool(fit and fit.fits)

    if not copies or not fits(copies[-1]):
        return None
    dp = copies[bisect_left(copies, True, key=fits)]
    least = next(zero for zero in zeros if fits(dp, zero))
    return search.fit(replace(split, dp=dp, zero=least))


def _divisors(training: Training, most: int) -> Sequence[int]:
    """Data-parallel sizes among which the batch can be shared out; without a batch all up to ``most``."""
    if training.global_batch_size is None:
        return range(1, most + 1)
    whole, rest = divmod(training.global_batch_size, training.micro_batch_size)
    return [] if rest else [n for n in range(1, min(whole, most) + 1) if whole % n == 0]


def _copies(split: Layout, training: Training, divisors: Sequence[int], most: int) -> Sequence[int]:
    """Those of ``divisors`` that make no more than ``most`` devices and can be run with the experts and chunks."""
    last, each = most // split.devices, split.ep // math.gcd(split.ep, split.expert_ranks)
    if isinstance(divisors, range):
        return range(each, last + 1, each)
    # Interleaving takes micro-batches in groups of as many as there are stages.
    group = split.pp if split.vpp > 1 and not split.uneven else 1
    return [n for n in divisors if n <= last and n % each == 0 and not (training.micro_batches(n) or 0) % group]


def _expert_shares(split: Layout) -> tuple[Layout, ...]:
    """Each expert on as many devices as ``tp`` and whole on one: where that is free, it hangs on the copies."""
    if split.etp is not None or split.ep == 1 or split.tp == 1:
        return (split,)
    return (replace(split, etp=split.tp), replace(split, etp=1))


def _try(search: Search, layout: Layout) -> Fit | None:
    """None for a layout that cannot be run."""
    try:
        return search.fit(layout)
    except UsageError:
        return None


def _cost(layout: Layout) -> tuple[int, int]:
    return layout.tp * layout.pp * layout.ep, layout.pp


def _splits(search: Search, fixed: Fixed) -> Iterator[Layout]:
    """One copy of the model: tensor sizes up to a node, stages that divide the layers or are a power of two."""
    layers, experts = search.counted.num_dense_layers + search.counted.num_moe_layers, search.shape.num_experts or 1
    stages = [p for p in range(1, layers + 1) if layers % p == 0 or p & (p - 1) == 0]
    powers = [2**i for i in range(experts.bit_length()) if 2**i <= experts]
    for tp in (1, 2, 4, NODE) if fixed.tp is None else (fixed.tp,):
        for pp in stages if fixed.pp is None else (fixed.pp,):
            for ep in powers if fixed.ep is None else (fixed.ep,):
                split = Layout(tp, pp, 1, fixed.cp, ep, fixed.vpp, sequence_parallel=fixed.sequence_parallel)
                yield replace(split, etp=fixed.etp, uneven=fixed.uneven)
