"""Who ran: the model on its devices, the framework, when, how long and how far."""

from __future__ import annotations

from analysis.present.words import framework_text
from analysis.present.words.forms import big, devices, span
from analysis.run.run import Run
from analysis.run.title import Title
from logparse.language import tr


def who(run: Run) -> str:
    """Model on devices, framework, number type, when, how long, how far."""
    title = run.title
    facts = (
        tr("{model} on {devices}", model=_model(title), devices=_devices(title)),
        framework_text(run.framework),
        run.context.get("precision"),
        _when(title, run.analysis.has_clock),
        _how_far(title),
    )
    return " · ".join(str(fact) for fact in facts if fact)


def _model(title: Title) -> str:
    """The model by its shape: its name in the catalogue, else its size."""
    if title.models:
        return tr(" or ").join(title.models)
    counted = title.parameters
    if counted is None:
        return title.printed_model or tr("a model of unknown size")
    if counted.active == counted.total:
        return tr("{n} parameters", n=big(counted.total))
    return tr("{n} parameters, {active} active", n=big(counted.total), active=big(counted.active))


def _devices(title: Title) -> str:
    number = tr("devices of unknown number") if title.devices is None else f"{title.devices:,}"
    if not title.device:
        return number if title.devices is None else devices(number)
    return tr("{n} x {device}", n=number, device=tr(title.device))


def _when(title: Title, by_clock: bool) -> str:
    lasted = span(title.seconds) if title.seconds else ""
    if lasted and not by_clock:
        lasted = tr("{time} of steps", time=lasted)
    begins = f"{title.begins:%Y-%m-%d %H:%M}" if title.begins else ""
    return tr(", ").join(part for part in (begins, lasted) if part)


def _how_far(title: Title) -> str:
    if title.last_step is None:
        return ""
    done, planned = f"{title.last_step:,}", title.planned_steps
    step = (
        tr("step {done}", done=done)
        if planned is None
        else tr("step {done} of {asked}", done=done, asked=f"{planned:,}")
    )
    tokens = tr("{n} tokens", n=big(title.tokens)) if title.tokens else ""
    return tr(", ").join(part for part in (step, tokens) if part)
