"""What a history amounts to, worked out from what happened; no log, and nothing of the product, is used.

The definitions are those of docs/numbers.md. A line stands for the steps since the line before; what a framework makes
of its timer is said by ``Habits``.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import median, median_high, median_low

from audit.histories import History, Model, Pause, Process, Step


@dataclass(frozen=True)
class Habits:
    """How a framework measures: evaluation and saving in the time of the line; a line of its own for the first step."""

    pauses_inside: bool = False
    first_step_alone: bool = False
    stamped: bool = True


@dataclass(frozen=True)
class Line:
    """One step line: its steps, pauses its time holds, and true times of its first step's begin and last step's end.

    ``kept`` is the share of its updates that the run kept and no line before has counted: a step that is done again is
    as good as the last time. A line of several steps does not say which of them was skipped.
    """

    process: int
    devices: int
    steps: tuple[Step, ...]
    inside: tuple[Pause, ...]
    begin: datetime
    end: datetime
    replayed: bool
    first: bool
    kept: float = 1.0

    @property
    def seconds(self) -> float:
        """The time of all its steps, as its framework measures it."""
        return sum(s.seconds for s in self.steps) + sum(p.seconds for p in self.inside)

    @property
    def ms(self) -> float:
        """The mean of its steps, in ms."""
        return 1000 * self.seconds / len(self.steps)

    @property
    def made(self) -> tuple[Step, ...]:
        """The steps whose update was made."""
        return tuple(s for s in self.steps if s.updates)

    @property
    def useful(self) -> float:
        """How many updates were made and kept."""
        return self.kept * len(self.made)

    @property
    def useful_seconds(self) -> float:
        """What these take when nothing is wrong."""
        return self.kept * sum(s.fair for s in self.made)

    @property
    def thrown_away(self) -> float:
        """Seconds of the updates that were made and not kept."""
        return self.seconds * (len(self.made) - self.useful) / len(self.steps)

    @property
    def not_made(self) -> float:
        """Seconds that the steps without an update take when nothing is wrong."""
        return sum(s.fair for s in self.steps if not s.updates)

    @property
    def reason(self) -> str | None:
        """Why it does not count, by the order of docs/numbers.md; None where it does."""
        kinds = {s.kind for s in self.steps}
        not_numbers = {"nan", "loss"}
        rules = (
            ("replayed", self.replayed and not self.useful and bool(self.made)),
            ("holds_evaluation", any(p.kind == "evaluation" for p in self.inside)),
            ("holds_save", any(p.kind == "save" for p in self.inside)),
            ("warm_up", self.first or "warm-up" in kinds),
            ("batch_changes", len({s.samples for s in self.steps}) > 1),
            ("nan", bool(not_numbers & kinds)),
            ("update_skipped", "skipped" in kinds),
            ("stall", "stall" in kinds),
        )
        return next((code for code, holds in rules if holds), None)


def lines_of(history: History, habits: Habits) -> list[Line]:
    """The step lines of a run."""
    found: list[Line] = []
    reached = 0
    for index, process in enumerate(history.processes):
        if not process.printed:
            continue
        own = list(_lines(history, habits, index, process, reached))
        found += own
        reached = max(reached, own[-1].steps[-1].number)
    return _with_kept(found)


def _with_kept(lines: list[Line]) -> list[Line]:
    """The lines with the share of their updates that was kept."""
    done: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        for step in line.steps:
            done.setdefault(step.number, []).append(index)
    useful = [Fraction(0)] * len(lines)
    for times in done.values():
        shares = [Fraction(len(lines[index].made), len(lines[index].steps)) for index in times]
        counted = Fraction(0)
        for index, share in zip(times, shares, strict=True):
            more = max(0, min(share, shares[-1]) - counted)
            useful[index] += more
            counted += more
    return [
        replace(line, kept=float(n / len(line.made))) if line.made else line
        for line, n in zip(lines, useful, strict=True)
    ]


def _lines(history: History, habits: Habits, index: int, process: Process, reached: int) -> Iterator[Line]:
    now = process.begins + timedelta(seconds=process.start_up)
    begin, steps, inside = now, [], []
    first, carried = True, ()
    for step in process.steps:
        begin = begin if steps else now
        steps.append(step)
        now += timedelta(seconds=step.seconds)
        alone = habits.first_step_alone and step is process.steps[0]
        if alone or step.number % history.log_interval == 0:
            held = (*carried, *inside) if habits.pauses_inside else ()
            replayed = step.number <= reached
            yield Line(index, process.devices, tuple(steps), held, begin, now, replayed, first)
            steps, inside, first, carried = [], [], False, process.paused_after(step.number)
        else:
            inside += process.paused_after(step.number)
        now += timedelta(seconds=sum(p.seconds for p in process.paused_after(step.number)))


@dataclass(frozen=True)
class Rate:
    """Seconds per useful step, and what a device did in a second of that time."""

    ms: float
    samples_per_second_per_device: float


@dataclass(frozen=True)
class Truth:
    """The answers."""

    history: History
    habits: Habits
    clock_begin: datetime
    clock_end: datetime

    @cached_property
    def lines(self) -> list[Line]:
        """All step lines."""
        return lines_of(self.history, self.habits)

    @property
    def printed(self) -> list[Process]:
        """The processes whose log is there."""
        return [process for process in self.history.processes if process.printed]

    @property
    def start_up(self) -> float:
        """Seconds before the first steps: lines of start-up have stamps, even if step lines have none."""
        return sum(p.start_up for p in self.history.processes if p.printed and not p.events_only)

    @cached_property
    def wall(self) -> float | None:
        """Seconds by the clock, from the first stamp to the last; None where step lines carry none."""
        return (self.clock_end - self.clock_begin).total_seconds() if self.habits.stamped else None

    @property
    def steady(self) -> Rate:
        """The median line that counts, of one size; of two in the middle that are no one pace, the slower."""
        counted = _of_one_size(self.lines)
        times = [line.ms for line in counted]
        rates = [_rate_of_line(line) for line in counted]
        return Rate(_middle(times, max), _middle(rates, min))

    @property
    def delivered(self) -> Rate:
        """Without warm-up, replay, and the lines whose time holds a pause."""
        left_out = ("warm_up", "replayed", "holds_evaluation", "holds_save")
        lines = [line for line in self.lines if line.reason not in left_out]
        return _over(lines, sum(line.seconds - line.thrown_away for line in lines))

    @property
    def all_steps(self) -> Rate:
        """Everything that lines stand for."""
        return _over(self.lines)

    @property
    def wall_clock(self) -> Rate | None:
        """Over the clock."""
        if self.wall is None:
            return None
        printed = _over(self.lines, self.wall)
        done = sum(line.useful for line in self.lines)
        # Steps that no line shows did the same work as the others.
        more = 1 + self.unseen_steps / done
        return Rate(printed.ms / more, printed.samples_per_second_per_device * more)

    @property
    def lost_steps(self) -> int:
        """Steps done again after a restart."""
        return sum(len(line.steps) for line in self.lines if line.replayed)

    @property
    def total(self) -> float:
        """Seconds that the account splits: the clock, or the time of the lines."""
        return self.start_up + sum(line.seconds for line in self.lines) if self.wall is None else self.wall

    @property
    def useful_seconds(self) -> float:
        """What the useful steps take when nothing is wrong, with the clock those that no line prints."""
        unseen = sum(self.unseen.values()) if self.wall is not None else 0.0
        return unseen + sum(line.useful_seconds for line in self.lines)

    @property
    def unseen_steps(self) -> int:
        """How many steps between the lines were kept, and no line prints them."""
        heads = [(a, b) for a, b in pairwise(self.lines) if a.process != b.process]
        resumes = [self.history.processes[behind.process].resumes for _, behind in heads]
        return sum(max(0, at - before.steps[-1].number) for at, (before, _) in zip(resumes, heads, strict=True))

    @cached_property
    def unseen(self) -> dict[int, float]:
        """By the process that goes on behind them: what steps take that were kept, and that no line prints."""
        found: dict[int, float] = {}
        for before, behind in pairwise(self.lines):
            if before.process != behind.process:
                kept = range(before.steps[-1].number + 1, self.history.processes[behind.process].resumes + 1)
                fair = {s.number: s.fair for p in self.history.processes[: behind.process] for s in p.steps}
                found[behind.process] = sum(fair[number] for number in kept)
        return found

    @property
    def goodput(self) -> float:
        """Their share."""
        return self.useful_seconds / self.total

    @property
    def left_seconds(self) -> float | None:
        """What the steps left will take if nothing goes wrong; None before the batch has grown to its full size."""
        last = self.lines[-1].steps[-1]
        if last.samples != self.history.full_batch:
            return None
        each = last.fair + sum(seconds / every for every, seconds in self.history.routine)
        return (self.history.train_steps - last.number) * each

    @property
    def luck_of_last_process(self) -> float:
        """By how much a step of the last process may mislead about those to come, in seconds.

        What stalled, and one round of what it does again and again, of which it may hold one more or less.
        """
        steps = [s for s in self.history.processes[-1].steps if s.samples == self.history.full_batch]
        stalled = sum(s.seconds - s.fair for s in steps if s.kind == "stall")
        return (stalled + sum(seconds for _, seconds in self.history.routine)) / len(steps)

    @cached_property
    def account(self) -> dict[str, float]:
        """Seconds of each part; evaluation and saves, which one gap can hold both, are one part ``pauses``."""
        parts = {"useful": self.useful_seconds}

        def again(line: Line) -> float:
            return 0.0 if line.reason == "replayed" else line.thrown_away

        for code, part in _PARTS.items():
            lines = [line for line in self.lines if line.reason == code]
            parts[part] = parts.get(part, 0.0) + sum(
                line.seconds - line.useful_seconds - line.not_made - again(line) for line in lines
            )
        parts["skipped"] += sum(line.not_made for line in self.lines)
        parts["replayed"] += sum(again(line) for line in self.lines)
        parts["start_up"] = self.start_up
        if self.wall is not None:
            self._add_outside(parts)
        return {part: seconds for part, seconds in parts.items() if abs(seconds) > 1e-6}

    def _add_outside(self, parts: dict[str, float]) -> None:
        """What lies between the lines."""
        parts["restarts"] = 0.0
        for before, behind in pairwise(self.lines):
            if before.process != behind.process:
                process = self.history.processes[behind.process]
                known = process.start_up if process.events_only else 0.0
                began = process.begins + timedelta(seconds=known)
                parts["restarts"] += (began - before.end).total_seconds() - self.unseen[behind.process]
            else:
                gap = (behind.end - before.end).total_seconds() - behind.seconds
                parts["pauses"] = parts.get("pauses", 0.0) + gap


_PARTS = {
    "warm_up": "warm_up",
    "replayed": "replayed",
    "holds_evaluation": "pauses",
    "holds_save": "pauses",
    "nan": "skipped",
    "update_skipped": "skipped",
    "stall": "stalls",
}


def _samples(steps: Iterable[Step]) -> int:
    return sum(s.samples for s in steps)


def _middle(values: list[float], slower: Callable[[float, float], float]) -> float:
    low, high = median_low(values), median_high(values)
    return slower(low, high) if high > 1.1 * low else (low + high) / 2


def _of_one_size(lines: list[Line]) -> list[Line]:
    """The lines that count; those of the batch and devices that ran longest, if a tenth of the steps have others."""
    counted = [line for line in lines if line.reason is None]
    sizes: dict[tuple[int, int], list[Line]] = {}
    for line in counted:
        sizes.setdefault(_size(line), []).append(line)
    several = [of_size for of_size in sizes.values() if len(of_size) >= 3]
    if not several:
        return counted
    longest, *more = sorted(several, key=lambda of_size: -sum(line.seconds for line in of_size))
    timed = [line for line in lines if line.reason != "warm_up"]
    others = [line for line in timed if _size(line) != _size(longest[0])]
    steps, of_others = (sum(len(line.steps) for line in some) for some in (timed, others))

    def far(of_size: list[Line], figure: Callable[[Line], float]) -> bool:
        return abs(median(map(figure, of_size)) / median(map(figure, longest)) - 1) > 0.1

    differ = any(far(size, lambda x: x.ms) or far(size, _rate_of_line) for size in (*more, others) if size)
    is_one = of_others < 0.1 * steps or steps - of_others < 0.2 * steps
    return longest if differ and not is_one else counted


def _size(line: Line) -> tuple[int, int]:
    return line.steps[-1].samples, line.devices


def _rate_of_line(line: Line) -> float:
    return _samples(line.steps) / line.seconds / line.devices


def _over(lines: list[Line], seconds: float | None = None) -> Rate:
    """Useful work over the time of ``lines``, or over ``seconds``."""
    time = sum(line.seconds for line in lines) if seconds is None else seconds
    work = sum(line.kept * _samples(line.made) / line.devices for line in lines)
    return Rate(1000 * time / sum(line.useful for line in lines), work / time)


# FLOPs, product of matrices by product of matrices.


def forward_flops(model: Model, tokens: int) -> dict[str, float]:
    """Operations of the forward pass over one sequence of ``tokens``: 2 m n k for a product of m x k and k x n."""
    width = model.hidden // model.heads
    layer = {
        "projections": 2.0 * tokens * model.hidden * width * (model.heads + 2 * model.groups)
        + 2.0 * tokens * (model.heads * width) * model.hidden,
        # Scores and their product with the values, of which causal attention needs one half.
        "attention": 2 * (2.0 * tokens * tokens * width * model.heads) / 2,
        "mlp": sum(
            2.0 * tokens * model.hidden * model.ffn for _ in range((3 if model.gated else 2) * (model.topk or 1))
        ),
    }
    logits = 2.0 * tokens * model.hidden * model.vocab
    return {name: count * model.layers for name, count in layer.items()} | {"logits": logits}


def as_built_flops(model: Model, tokens: int) -> float:
    """Operations of training on one sequence, forward and twice that backward."""
    return 3 * sum(forward_flops(model, tokens).values())


def executed_flops(history: History) -> float:
    """The same with what runs again: the forward pass of layers, or of the attention core of all; never the logits."""
    forward = forward_flops(history.model, history.seq_length)
    layers = sum(flops for name, flops in forward.items() if name != "logits")
    core = forward["attention"] if history.recompute.granularity == "selective" else 0.0
    return as_built_flops(history.model, history.seq_length) + recomputed_share(history) * layers + core


def ascendspeed_flops(history: History) -> float:
    """The user's formula, 24 c B s l h^2 (1 + s/(6h) + V/(16 l h)), of a sequence; c grows with recomputed layers."""
    m, s = history.model, history.seq_length
    base = 24 * s * m.layers * m.hidden**2 * (1 + s / (6 * m.hidden) + m.vocab / (16 * m.layers * m.hidden))
    return (3 + recomputed_share(history)) * base


def recomputed_share(history: History) -> float:
    """Share of the layers whose forward pass runs again."""
    if history.recompute.granularity != "full":
        return 0.0
    if history.recompute.layers is None:
        return 1.0
    return history.recompute.layers * history.layout.pipeline / history.model.layers
