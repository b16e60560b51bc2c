"""Which layouts fit into a device's memory, and the smallest that does.

Comes in: a counted model, what is fixed of the layout, how a step is done, the memory. Goes out: one row per
layout, the one that splits the model least first, because splitting costs time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.estimate.layout import Layout, Training, check_layout
from analysis.estimate.stages import Stage, estimate_stages
from analysis.parameters import Parameters
from analysis.shape import ModelShape
from logparse.errors import UsageError

# Devices of one node in all systems of the sources; tensor parallelism stays inside it.
NODE = 8
# Above this no search is made; the largest published runs used about as many.
MOST_DEVICES = 16384


@dataclass(frozen=True)
class Fixed:
    """What the user decided of the layout; None is free. ``zero`` None tries 0 and 1, ``ep`` None powers of two."""

    devices: int | None = None
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    cp: int = 1
    ep: int | None = None
    vpp: int = 1
    zero: int | None = None
    sequence_parallel: bool = True


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

    def fit(self, layout: Layout) -> Fit:
        """Stages of one layout. Raises UsageError for one that cannot be run."""
        check_layout(self.shape, layout, self.training)
        stages = estimate_stages(self.shape, self.counted, self.vocab_size, layout, self.training)
        return Fit(layout, stages, self.memory_bytes)


def all_fits(search: Search, fixed: Fixed, devices: int) -> tuple[Fit, ...]:
    """Every layout on ``devices`` that agrees with ``fixed`` and can be run; least split first, then fewest stages."""
    found = []
    for layout in _layouts(search, fixed, devices):
        try:
            found.append(search.fit(layout))
        except UsageError:
            continue
    return tuple(sorted(found, key=lambda f: (f.layout.tp * f.layout.pp * f.layout.ep, f.layout.pp, f.layout.zero)))


def smallest_fit(search: Search, fixed: Fixed) -> Fit | None:
    """The first layout that fits on the fewest devices (1, 2, 4, 8, 16 ...); None where none does or memory is unknown.

    A number of devices and a data-parallel size that the user gave say how many there are, not how many are needed, so
    they do not bind here.
    """
    if search.memory_bytes is None:
        return None
    devices, free = 1, replace(fixed, devices=None, dp=None)
    while devices <= MOST_DEVICES:
        fit = next((f for f in all_fits(search, free, devices) if f.fits), None)
        if fit:
            return fit
        devices *= 2
    return None


def _layouts(search: Search, fixed: Fixed, devices: int) -> Iterator[Layout]:
    """Tensor sizes up to a node, pipeline sizes that divide the layers; the rest is data parallel."""
    layers = search.counted.num_dense_layers + search.counted.num_moe_layers
    stages = [p for p in range(1, layers + 1) if layers % p == 0 or p & (p - 1) == 0]
    for tp in (1, 2, 4, NODE) if fixed.tp is None else (fixed.tp,):
        for pp in stages if fixed.pp is None else (fixed.pp,):
            dp, rest = divmod(devices, tp * pp * fixed.cp)
            if not rest and dp and fixed.dp in (None, dp):
                yield from _variants(search, fixed, Layout(tp, pp, dp, fixed.cp, 1, fixed.vpp))


def _variants(search: Search, fixed: Fixed, layout: Layout) -> Iterator[Layout]:
    """The same split of the layers, with every ZeRO and number of expert-parallel ranks that is free."""
    ranks = layout.zero_degree
    experts = min(search.shape.num_experts or 1, ranks)
    parts = [2**i for i in range(experts.bit_length()) if 2**i <= experts] if fixed.ep is None else [fixed.ep]
    # With one data-parallel rank there is nothing to share out.
    zeros = ((0, 1) if ranks > 1 else (0,)) if fixed.zero is None else (fixed.zero,)
    for ep in parts:
        for zero in zeros:
            yield replace(layout, ep=ep, zero=zero, sequence_parallel=fixed.sequence_parallel)
