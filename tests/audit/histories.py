"""What happened in a run, described: nothing here is read from a log, and nothing of the product is used.

A history is a list of processes that follow each other. All seconds are true ones; what a framework prints of them is
said by its printer, what they amount to by ``truth``.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

# ``gradient``, ``loss`` and ``vanished`` are NaN updates that no counter shows, by what the line prints of them.
Kind = Literal["usual", "warm-up", "stall", "skipped", "nan", "gradient", "loss", "vanished"]
UPDATES: tuple[Kind, ...] = ("usual", "warm-up", "stall")
PauseKind = Literal["evaluation", "save"]


@dataclass(frozen=True)
class Model:
    """Sizes of a decoder. ``experts`` 0 is a dense MLP; ``topk`` of them, ``ffn`` wide each, work on a token."""

    layers: int = 8
    hidden: int = 2048
    ffn: int = 8192
    heads: int = 16
    groups: int = 16
    vocab: int = 32000
    gated: bool = False
    experts: int = 0
    topk: int = 0


@dataclass(frozen=True)
class Layout:
    """How the model lies on the devices; the rest of them is data-parallel."""

    tensor: int = 1
    pipeline: int = 1


@dataclass(frozen=True)
class Recompute:
    """``layers`` of each pipeline stage run their forward pass again; None with ``full`` is all of them."""

    granularity: Literal["none", "selective", "full"] = "none"
    layers: int | None = None


@dataclass(frozen=True)
class Step:
    """One optimizer step. ``fair`` is what it takes when nothing is wrong; ``seconds`` what it took."""

    number: int
    samples: int
    fair: float
    seconds: float
    kind: Kind = "usual"

    @property
    def updates(self) -> bool:
        """Whether its update was made."""
        return self.kind in UPDATES


@dataclass(frozen=True)
class Pause:
    """What a process does behind step ``after`` instead of training."""

    kind: PauseKind
    after: int
    seconds: float


@dataclass(frozen=True)
class Process:
    """One start. ``begins`` is true time; behind step ``falls_back`` its clock shows an hour less, as in autumn.

    ``resumes`` is the step of the checkpoint it loads, 0 for none; ``start_up`` the seconds to its first step. Behind
    step ``set_ahead`` its clock is ahead by so many seconds for good. Of a process whose log is missing nothing is
    ``printed``; one with ``events_only`` prints no settings.
    """

    begins: datetime
    devices: int
    resumes: int
    start_up: float
    steps: tuple[Step, ...]
    pauses: tuple[Pause, ...] = ()
    falls_back: int | None = None
    set_ahead: tuple[int, float] | None = None
    printed: bool = True
    events_only: bool = False

    def shown(self, now: datetime, step: int = 0) -> datetime:
        """What its clock shows at the end of ``step``."""
        ahead = self.set_ahead[1] if self.set_ahead is not None and step > self.set_ahead[0] else 0.0
        return now + timedelta(seconds=ahead) - timedelta(hours=self.falls_back is not None and step > self.falls_back)

    def paused_after(self, number: int) -> tuple[Pause, ...]:
        """The pauses behind a step."""
        return tuple(p for p in self.pauses if p.after == number)


@dataclass(frozen=True)
class History:
    """A run. ``consumed`` holds the samples consumed with the step of each number, those of skipped steps too.

    ``routine`` is what every process does again and again: each so many steps, for so many seconds. Of evaluations
    with ``evaluates_every`` no line is printed, only this setting.
    """

    model: Model
    layout: Layout
    recompute: Recompute
    seq_length: int
    log_interval: int
    train_steps: int
    processes: tuple[Process, ...]
    routine: tuple[tuple[int, float], ...] = ()
    micro_batch: int = 1
    full_batch: int = 64
    noise: float = 0.0
    consumed: dict[int, int] = field(default_factory=dict)
    evaluates_every: int | None = None
