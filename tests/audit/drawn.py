"""Histories drawn at random, each far enough from every rule's edge that careful readers would agree on it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from audit.histories import History, Kind, Layout, Model, Pause, PauseKind, Process, Recompute, Step
from hypothesis import strategies as st

BEGIN = datetime(2025, 10, 26, 1, 0, 0, 123457)
BATCH = 64

MODELS = (
    Model(),
    Model(layers=16, hidden=1024, ffn=3584, heads=16, groups=4, vocab=51200, gated=True),
    Model(layers=8, hidden=4096, ffn=14336, heads=32, groups=8, gated=True),
    Model(layers=8, hidden=2048, ffn=5632, heads=16, groups=8, gated=True, experts=8, topk=2),
)


@dataclass(frozen=True)
class Plan:
    """What is drawn; the steps follow from it. Periods are in lines; ``slow_first`` are factors on the first steps.

    ``first_skips`` updates are skipped in the first line of each process. ``breaks`` is what is NaN in the last third
    of the last process, ``rolled_back`` what the others do after their last save, so that it is done again. ``tail``
    steps behind the last line of a process end in a save. ``missing`` is a process whose log is not there,
    ``events_only`` processes behind the first print no settings. ``set_ahead`` seconds is the clock set.
    Where it ``evaluates_silently``, the settings alone say how often.
    """

    seed: int
    model: Model
    layout: Layout
    recompute: Recompute
    devices: tuple[int, ...]
    log_interval: int
    lines: tuple[int, ...]
    step_seconds: float
    fixed_share: float
    noise: float
    start_up: float
    slow_first: tuple[float, ...]
    stalls: int
    skips: int
    nans: int
    ramp: bool
    ramp_shift: int
    save_every: int
    save_seconds: float
    evaluate_every: int
    evaluate_seconds: float
    rest: float
    falls_back: bool
    first_skips: int = 0
    breaks: Kind = "usual"
    rolled_back: Kind = "usual"
    tail: int = 0
    missing: int | None = None
    events_only: bool = False
    set_ahead: float = 0.0
    evaluates_silently: bool = False


@st.composite
def plans(draw: Any) -> Plan:
    """A plan of a run of one to three processes."""
    processes = draw(st.integers(1, 3))
    tensor, pipeline = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 2)]))
    replicas = draw(st.lists(st.sampled_from([2, 4, 8]), min_size=processes, max_size=processes))
    replicas = replicas if draw(st.booleans()) else replicas[:1] * processes
    granularity = draw(st.sampled_from(["none", "none", "selective", "full"]))
    model = draw(st.sampled_from(MODELS))
    layers = draw(st.none() | st.integers(0, model.layers // pipeline)) if granularity == "full" else None
    falls_back = draw(st.sampled_from([False, False, True]))
    tail = draw(st.sampled_from([0, 0, 0, 2, 4]))
    missing = draw(st.sampled_from([None, None, 1])) if processes == 3 else None
    log_interval = draw(st.sampled_from([1, 5, 10]))
    # Steps that no line shows are priced as those before them: one batch, and no other number of devices.
    unseen = tail > 0 or missing is not None
    ramp = draw(st.booleans()) and not unseen
    events_only = draw(st.booleans())
    # Devices that no line prints are unknown.
    replicas = replicas[:1] * processes if unseen or events_only else replicas
    shifts = (0, 0, NEAR_THE_BEGIN, 15 * log_interval - 3) if log_interval > 1 else (0, 0, NEAR_THE_BEGIN)
    plan = Plan(
        seed=draw(st.integers(0, 2**32)),
        model=model,
        layout=Layout(tensor, pipeline),
        recompute=Recompute(granularity, layers),
        devices=tuple(tensor * pipeline * n for n in replicas),
        log_interval=log_interval,
        lines=tuple(draw(st.integers(30, 70)) for _ in range(processes)),
        step_seconds=draw(st.sampled_from([0.4, 1.7, 7.0, 31.25])),
        fixed_share=draw(st.sampled_from([0.0, 0.3])),
        noise=draw(st.sampled_from([0.0, 0.0, 0.01])),
        start_up=draw(st.sampled_from([0.0, 12.0, 300.0])),
        slow_first=draw(st.sampled_from([(3.0,), (20.0,), (9.0, 1.6), (8.0, 2.0, 1.5)])),
        stalls=draw(st.integers(0, 3)),
        skips=draw(st.integers(0, 2)),
        nans=draw(st.integers(0, 2)),
        ramp=ramp,
        ramp_shift=draw(st.sampled_from(shifts)),
        save_every=draw(st.sampled_from([0, 1, 10, 20, 50])),
        save_seconds=draw(st.sampled_from([3.0, 40.0])),
        evaluate_every=draw(st.sampled_from([0, 25])),
        evaluate_seconds=draw(st.sampled_from([5.0, 60.0])),
        rest=draw(st.sampled_from([0.0, 45.0, 3600.0])),
        falls_back=falls_back,
        first_skips=draw(st.sampled_from([0, 0, 1, 2])),
        breaks=draw(st.sampled_from(BREAKS)),
        rolled_back=draw(st.sampled_from((*BREAKS, "nan", "skipped"))),
        tail=tail if log_interval > tail else 0,
        missing=missing,
        events_only=events_only,
        set_ahead=0.0 if falls_back else draw(st.sampled_from([0.0, 0.0, 900.0, 3600.0, 25_200.0])),
    )
    if draw(st.sampled_from([False, False, True])):
        # Often and long enough that the times show each.
        seconds = max(plan.evaluate_seconds, 2 * plan.step_seconds)
        plan = replace(plan, evaluates_silently=True, evaluate_every=5, evaluate_seconds=seconds)
    # Of a first line with two batches no log says which of its updates were skipped.
    return replace(plan, first_skips=0) if plan.ramp and plan.ramp_shift > NEAR_THE_BEGIN else plan


# A ramp that is shifted by more changes the batch within the first line.
NEAR_THE_BEGIN = 3
BREAKS: tuple[Kind, ...] = ("usual", "usual", "usual", "gradient", "loss", "vanished")


def as_before_core(plan: Plan) -> Plan:
    """What Megatron 2 can train: every head with keys of its own, an MLP that is not gated."""
    # Without timers, lines that all hold a save have no steady step.
    plan = replace(plan, save_every=10 if plan.save_every == 1 else plan.save_every)
    return replace(plan, model=MODELS[0], recompute=_fitting(plan, MODELS[0]))


def as_mindformers(plan: Plan) -> Plan:
    """What MindFormers can do and print: a gated dense model, every step on a line, one batch, no evaluation."""
    dense = next(m for m in MODELS if m.gated and not m.experts)
    recompute = _fitting(plan, dense) if plan.recompute.granularity == "full" else Recompute()
    plan = replace(plan, log_interval=1, ramp=False, evaluate_every=0, tail=0, events_only=False)
    return replace(
        plan, model=dense, recompute=recompute, breaks=_in_loss(plan.breaks), rolled_back=_in_loss(plan.rolled_back)
    )


def _in_loss(kind: Kind) -> Kind:
    return "loss" if kind in ("gradient", "vanished") else kind


def _fitting(plan: Plan, model: Model) -> Recompute:
    """The plan's recomputation of no more layers than a stage of ``model`` has."""
    layers = plan.recompute.layers
    return replace(plan.recompute, layers=None if layers is None else min(layers, model.layers // plan.layout.pipeline))


def history_of(plan: Plan, done: int = 0) -> History:
    """Let the run of ``plan`` happen, from the checkpoint of step ``done`` on."""
    chance = random.Random(plan.seed)
    now, processes = BEGIN, []
    for index in range(len(plan.lines)):
        process = _process(plan, index, now, done, chance)
        processes.append(process)
        took = plan.start_up + sum(s.seconds for s in process.steps) + sum(p.seconds for p in process.pauses)
        now += timedelta(seconds=took + plan.rest)
        done = _last_checkpoint(process)
    # What was done behind the last line is not in the log.
    last = max(s.number for p in processes for s in p.steps)
    consumed = {0: 0}
    for number in range(1, last + 1):
        consumed[number] = consumed[number - 1] + _samples(plan, number)
    return History(
        model=plan.model,
        layout=plan.layout,
        recompute=plan.recompute,
        seq_length=2048,
        log_interval=plan.log_interval,
        train_steps=last + 1000 * plan.log_interval,
        processes=tuple(processes),
        routine=tuple((every * plan.log_interval, seconds) for _, every, seconds in _routine(plan) if every),
        full_batch=BATCH,
        noise=plan.noise,
        consumed=consumed,
        evaluates_every=plan.evaluate_every * plan.log_interval if plan.evaluates_silently else None,
    )


def _samples(plan: Plan, number: int) -> int:
    """The batch of a step: with a ramp a quarter, then half, then all of it, about 15 lines each."""
    level = (number - 1 + plan.ramp_shift) // (15 * plan.log_interval) if plan.ramp else 2
    return BATCH // (4, 2, 1)[min(level, 2)]


def _last_checkpoint(process: Process) -> int:
    """Where the next process goes on: the last checkpoint; without any, where this one ended."""
    saved = [p.after for p in process.pauses if p.kind == "save"]
    return saved[-1] if saved else process.steps[-1].number


def _process(plan: Plan, index: int, begins: datetime, done: int, chance: random.Random) -> Process:
    interval, is_last = plan.log_interval, index + 1 == len(plan.lines)
    ends = (done // interval + plan.lines[index]) * interval
    numbers = range(done + 1, ends + plan.tail + 1)
    breaks = plan.breaks if is_last else plan.rolled_back
    saved = plan.save_every * interval
    # What is rolled back comes after the last save.
    healthy = ends // saved * saved if saved and not is_last else numbers[2 * len(numbers) // 3]
    odd = dict(_odd(plan, done, plan.lines[index], chance)) | dict(_broken(plan, breaks, numbers, healthy))
    pauses = (*_pauses(plan, numbers), *([Pause("save", numbers[-1], plan.save_seconds)] if plan.tail else []))
    steps = []
    for place, number in enumerate(numbers):
        fair = _fair(plan, plan.devices[index], _samples(plan, number)) * (1 + plan.noise * chance.uniform(-1, 1))
        factor, kind = odd.get(place, (1.0, "usual"))
        steps.append(Step(number, _samples(plan, number), fair, fair * factor, kind))
    return Process(
        begins=begins,
        devices=plan.devices[index],
        resumes=done,
        start_up=plan.start_up,
        steps=tuple(steps),
        pauses=pauses,
        # Later starts would show the hour less as well, and nothing tells how long the job rested before them.
        falls_back=numbers[len(numbers) // 2] if plan.falls_back and is_last else None,
        set_ahead=_set_ahead(plan, done, odd) if plan.set_ahead and is_last else None,
        printed=index != plan.missing,
        events_only=plan.events_only and index > 0,
    )


def _broken(plan: Plan, kind: Kind, numbers: range, healthy: int) -> Iterator[tuple[int, tuple[float, Kind]]]:
    """From the first line after step ``healthy`` on every update is of ``kind``."""
    if kind != "usual":
        first = healthy // plan.log_interval * plan.log_interval + 1
        yield from ((number - numbers[0], (1.0, kind)) for number in numbers if number >= first)


def _set_ahead(plan: Plan, done: int, odd: dict[int, tuple[float, Kind]]) -> tuple[int, float] | None:
    """The step behind which the clock is set: between two lines of typical steps, with no pause near."""
    interval = plan.log_interval
    slow = {(done + place) // interval for place, (factor, _) in odd.items() if factor > 1}
    for line in range(done // interval + 12, (done // interval) + plan.lines[-1] - 4):
        if not any(_paused(plan, n) for n in (line - 1, line, line + 1)) and not slow & {line - 1, line}:
            return line * interval, plan.set_ahead
    return None


def _fair(plan: Plan, devices: int, samples: int) -> float:
    """A step has a part that does not grow with the batch; more devices share the work."""
    share = plan.fixed_share + (1 - plan.fixed_share) * samples / BATCH
    return plan.step_seconds * share * plan.devices[0] / devices


def _odd(plan: Plan, done: int, lines: int, chance: random.Random) -> Iterator[tuple[int, tuple[float, Kind]]]:
    """Places in a process whose step is not usual, with the factor on its time; each can be seen in its line's mean."""
    interval = plan.log_interval
    short = done % interval
    for place, factor in enumerate(plan.slow_first):
        skipped = interval == 1 and place == 0 and plan.first_skips > 0
        yield place, (1 + (factor - 1) * interval, "skipped" if skipped else "warm-up")
    for place in range(len(plan.slow_first), min(len(plan.slow_first) + plan.first_skips, interval - short)):
        yield place, (1.0, "skipped")
    # How long a step stalled whose line holds a pause too, no log tells.
    free = [line for line in range(8, lines - 2, 4) if not _paused(plan, done // interval + line)]
    chance.shuffle(free)
    kinds: tuple[tuple[Kind, int], ...] = (("stall", plan.stalls), ("skipped", plan.skips), ("nan", plan.nans))
    for kind, n in kinds:
        for _ in range(min(n, len(free))):
            place = free.pop() * interval + chance.randrange(interval) - short
            yield place, (1 + chance.choice([0.8, 3.0]) * interval if kind == "stall" else 1.0, kind)


def _paused(plan: Plan, line: int) -> bool:
    """Whether a pause lies before a line, counted from 0 at the beginning of the run."""
    return any(every and line % every == 0 for _, every, _ in _routine(plan))


def _routine(plan: Plan) -> tuple[tuple[PauseKind, int, float], ...]:
    """What a process does beside training, each so many lines, for so many seconds."""
    return (
        ("evaluation", plan.evaluate_every, plan.evaluate_seconds),
        ("save", plan.save_every, plan.save_seconds),
    )


def _pauses(plan: Plan, numbers: range) -> Iterator[Pause]:
    for number in numbers:
        for kind, every, seconds in _routine(plan):
            if every and number % (every * plan.log_interval) == 0:
                yield Pause(kind, number, seconds)
