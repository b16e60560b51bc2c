"""The title of a run: the model on its devices, the framework, when, how long and how far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from analysis.model.shape import PREFERENCE
from analysis.present.parts import RunTitle
from analysis.present.views.ending import ended_early, ending_clause
from analysis.present.words import framework_text
from analysis.present.words.forms import big, devices, minute, span
from analysis.run.checks.self_checks import GOODPUT, is_withheld
from analysis.run.run import SHORTEST_SECONDS, Run
from analysis.run.title import Title
from logparse.failures.ending import FAILED
from logparse.failures.signatures import LOST_VALUES, NEVER_FINITE
from logparse.language import msg, tr


def title_part(run: Run) -> RunTitle:
    """The two lines that every screen of a run begins with."""
    return RunTitle(_who(run), _extent(run))


def who(run: Run) -> str:
    """Model on devices, precision, framework: one line."""
    return tr(", ").join(_who(run))


def extent(run: Run) -> str:
    """How far, how many tokens, when and how long: one line; a run that failed says so first."""
    return tr(" · ").join(_extent(run))


def _who(run: Run) -> list[str]:
    title = run.title
    facts = (
        tr("{model} on {devices}", model=model_text(title), devices=_devices(title)),
        "LoRA" if run.context.get("lora") else None,
        run.context.get("precision"),
        framework_text(run.framework),
    )
    return [str(fact) for fact in facts if fact]


def _extent(run: Run) -> list[str]:
    title = run.title
    tokens = of_tokens(run, tr("{n} tokens", n=big(title.tokens))) if title.tokens else ""
    failed = ending_clause(run)
    if failed and tokens and (title.first_step or 0) > 1:
        # The step at which it failed does not say where the log begins.
        tokens = tr("{tokens} from step {first} on", tokens=tokens, first=f"{title.first_step:,}")
    # Without a breakdown the duration is the sum of the step lines.
    by_clock = run.analysis.has_clock and not run.analysis.time_breakdown.is_empty()
    # Between two trainings lies time of neither.
    several = run.analysis.has_clock and run.trainings > 1
    when = _when(replace(title, seconds=None) if several else title, by_clock)
    facts = (_mixed(run) or failed or _how_far(run), tokens, when, _no_goodput(run))
    return [fact for fact in facts if fact]


def _no_goodput(run: Run) -> str:
    """Why a run with steps has none."""
    if run.steps.is_empty():
        return ""
    # Updates that are all NaN have a goodput of 0, and no rate.
    timed = run.analysis.rate("all_steps")["step_time_ms"] is not None or run.analysis.goodput is not None
    untimed = not timed and not run.analysis.streams
    one_mean = any(note.code == "time_by_rate_of_run" for note in run.notes)
    if one_mean and (run.title.seconds or 0.0) >= SHORTEST_SECONDS:
        return tr("no goodput: the log has only the average step time")
    if run.has_few_steps if untimed else run.short:
        if untimed or run.has_few_counted:
            lines = len(run.steps.filter("counted")) or len(run.steps)
            text = msg("{n} log lines: too few for goodput") if lines > 1 else msg("{n} log line: too few for goodput")
            return tr(text, n=lines)
        return tr("under {n} min: too short for goodput", n=round(SHORTEST_SECONDS / 60))
    if run.generates:
        return tr("no goodput: steps include generation")
    if (several := run.trainings) > 1 and not run.analysis.streams:
        return tr("no goodput of {n} separate trainings", n=several)
    if is_withheld(run.checks, GOODPUT) and not run.analysis.streams:
        return tr("no goodput: figures contradict each other")
    without = msg("no goodput: no step was useful") if run.has_times else msg("no goodput without step times")
    return tr(without) if untimed else ""


def of_tokens(run: Run, figure: str) -> str:
    """A ``figure`` that follows from tokens: the most that it can be where samples differ in length, or are fewer.

    A sample of preference training may be a pair of sequences, of which one is counted.
    """
    if run.counts_full_samples and run.analysis.computation.shape.mixed_step == PREFERENCE:
        return tr("at most {value}, one sequence a sample", value=figure)
    return tr("at most {value}", value=figure) if run.counts_full_samples else figure


def _mixed(run: Run) -> str:
    """How many runs write to one file, whose steps are not those of one run."""
    n = len(run.analysis.streams)
    return tr("{n} runs mixed in one file", n=n) if n else ""


def model_text(title: Title) -> str:
    """The model by its shape: its name in the catalogue, else its size."""
    if title.models:
        return tr(" or ").join(title.models)
    counted = title.parameters
    if counted is None:
        printed = title.printed_parameters and tr("{n} parameters", n=big(title.printed_parameters))
        return title.printed_model or _by_shape(title) or printed or tr("unknown model")
    if counted.active == counted.total:
        return tr("{n} parameters", n=big(counted.total))
    return tr("{n} parameters, {active} active", n=big(counted.total), active=big(counted.active))


def _by_shape(title: Title) -> str:
    """The layers and their width of a model whose parameters cannot be counted; empty where they are unknown."""
    if title.layers is None or title.width is None:
        return ""
    return tr("{layers} layers x {width}", layers=title.layers, width=f"{title.width:,}")


def _devices(title: Title) -> str:
    if title.devices is None:
        return tr("{device} (number unknown)", device=tr(title.device)) if title.device else tr("unknown devices")
    number = f"{title.devices:,}"
    return tr("{n} x {device}", n=number, device=tr(title.device)) if title.device else devices(number)


def _when(title: Title, by_clock: bool) -> str:
    lasted = span(title.seconds) if title.seconds else ""
    if lasted and not by_clock:
        lasted = tr(msg("at least {time} logged") if title.untimed else msg("{time} logged"), time=lasted)
    begins = minute(title.begins) if title.begins else ""
    return tr(", ").join(part for part in (begins, lasted) if part)


def _how_far(run: Run) -> str:
    """How far the run got, and whether its last losses or norms say that it trains nothing."""
    text, ending = _steps_and_end(run), run.log.ending
    if not text or ending is None or ending.remedy not in (LOST_VALUES, NEVER_FINITE):
        return text
    return tr("{text}; the last values are not finite", text=text)


def _steps_and_end(run: Run) -> str:
    """The steps of the log, and that the run completed, or that its trainer ended by itself before its plan.

    Where the log ends in the middle of a plan, nothing shows whether it is cut off or the run goes on.
    """
    title, ending = run.title, run.log.ending
    text = _steps(title)
    if not text or ending is None or ending.state not in ("completed", "cut_off"):
        return text
    interval: Any = run.steps["iterations"].max() or 1
    planned, from_zero = title.planned_steps, title.first_step == 0
    ended = planned is None or planned < (title.last_step or 0) + interval + from_zero
    if ending.unfinished_evaluation is not None:
        return tr("{text}; the log ends within an evaluation", text=text)
    if ending.state == "cut_off":
        return text if ended else tr("{text}, cut off or running", text=text)
    if ending.ended_early:
        return ended_early(text)
    if ended and planned is not None and planned > (title.last_step or 0) + from_zero:
        # The last steps were too few for a line of their own.
        text = tr("{text} printed", text=text)
    if ending.attempts_in_log > 1 and any(attempt.state in FAILED for attempt in ending.attempts):
        return tr("{text}, completed in attempt {n}", text=text, n=f"{ending.attempts_in_log:,}")
    return tr("{text}, completed", text=text)


def _steps(title: Title) -> str:
    if title.last_step is None or title.first_step is None:
        return ""
    first, last = (f"{step:,}" for step in (max(title.first_step, 0), title.last_step))
    if title.planned_steps is None:
        return tr("step {last}", last=last) if first == last else tr("steps {first} to {last}", first=first, last=last)
    text = msg("step {last} of {planned}") if first == last else msg("steps {first} to {last} of {planned}")
    return tr(text, first=first, last=last, planned=f"{title.planned_steps:,}")
