"""What is known about a run: every quantity with its value and where the value is from.

Comes in: the settings frame and what the user gave. Goes out: a RunContext. Flags beat --model, which beats the
config file, which beats the log. What follows from known quantities is derived by a named rule; what does
not stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import regex

from logparse.context.layer_patterns import noop_layers
from logparse.context.relations import Fact, broken_identities, derive, is_derived
from logparse.context.restarted_settings import Printing, Row, first_printed, list_printings
from logparse.findings import WITHOUT, Note, Origin, warning
from logparse.formats._base import ABSENT, PRESENT, LogFormat
from logparse.light_dataclass import dataclass, field, replace
from logparse.schema import QUANTITY, Quantity

__all__ = [
    "Fact",
    "Given",
    "RunContext",
    "SettingsChange",
    "build_changes",
    "build_context",
    "facts_of_other_formats",
    "read_value",
]

NOTHING = ("None", "null", "")
# If the user states whether there is recomputation, the amount that the log prints is void.
OF_RECOMPUTE = frozenset(name for name in QUANTITY if name.startswith("recompute")) - {"recompute"}
NO_PLACES = pl.DataFrame(schema={"source": pl.String, "line_number": pl.Int64})


# Samples that are no sequences of tokens.
WITHOUT_TOKENS = ("images", "speech")


@dataclass(frozen=True)
class RunContext:
    """Facts by quantity name, the notes on what contradicts what, and the names of what the user gave."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    given: frozenset[str] = frozenset()

    def get(self, name: str) -> Any:
        """The value of a quantity; None where it is unknown."""
        fact = self.facts.get(name)
        return fact.value if fact else None

    def origin(self, name: str) -> Origin | None:
        """Where the value of a quantity is from."""
        fact = self.facts.get(name)
        return fact.origin if fact else None

    @property
    def without_tokens(self) -> bool:
        """Whether the samples are images or speech, and nothing gives their length in tokens."""
        return self.get("training_data") in WITHOUT_TOKENS and self.get("seq_length") is None

    def values(self) -> dict[str, Any]:
        """Quantity to value, known ones only."""
        return {name: fact.value for name, fact in self.facts.items()}


@dataclass(frozen=True)
class Given:
    """What the user gave besides the logs: layers of facts, strongest first, and options of the config file.

    ``weaker`` are facts that hold only where the logs say nothing.
    """

    layers: tuple[Mapping[str, Fact], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    file: Path | None = None
    weaker: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True)
class SettingsChange:
    """From ``line_number`` of ``source`` on, where a later start printed other settings, ``context`` holds."""

    source: str
    line_number: int
    context: RunContext


def build_context(
    settings: pl.DataFrame,
    fmt: LogFormat,
    given: Sequence[Mapping[str, Fact]] = (),
    several: bool = False,
    lines: Mapping[str, Fact] | None = None,
    places: pl.DataFrame = NO_PLACES,
    weaker: Mapping[str, Fact] | None = None,
    printings: Sequence[Printing] = (),
) -> RunContext:
    """Put together what ``given`` (strongest first) and the log's ``settings`` say, and derive the rest.

    ``several``: the run has several files, so an origin names its file. ``lines`` are facts that the step lines or
    other formats print; they apply where no setting does. ``places`` (source, line_number) are the step lines: the
    settings of the first start count, see ``build_changes`` for the others. ``weaker`` facts fill the gaps that remain.
    ``printings`` are what ``list_printings`` made of both, where it is known.
    Raises UsageError where quantities given by the user contradict each other.
    """
    log = _facts_of_log(first_printed(printings or list_printings(settings, places)), fmt, several)
    # Without a step line in the same file it is unknown which of two values holds for which steps.
    aside = settings.join(places, on="source", how="anti", maintain_order="left")
    notes = _changed(aside, fmt, several)
    facts: dict[str, Fact] = {}
    given = [_without_same_layers(layer, log) for layer in given]
    for layer in (*given, log):
        notes += _overridden(facts, layer)
        facts = {**layer, **facts}
    derived = derive(_void({**(lines or {}), **facts}, given))
    if weaker:
        derived = derive({**weaker, **derived})
    if fmt.from_zero:
        derived["steps_from_zero"] = Fact(True, Origin("appearance"))
    if fmt.trains_on:
        derived.setdefault("training_data", Fact(fmt.trains_on, Origin("appearance")))
    names = frozenset(name for layer in given for name in layer)
    notes += broken_identities(derived, sorted(names))
    return _context(derived, notes, names)


def build_changes(
    base: RunContext, printings: Sequence[Printing], fmt: LogFormat, several: bool
) -> list[SettingsChange]:
    """The contexts of later starts whose printed settings differ from those in force before; the user's stay."""
    given = {name: base.facts[name] for name in base.given}
    printed = {(name, fact.value) for name, fact in _facts_of_log(first_printed(printings), fmt, several).items()}
    changes: list[SettingsChange] = []
    before: dict[str, RunContext] = {}
    last: dict[str, dict[str, Any]] = {}
    for printing in (p for p in printings if p.line_number is not None):
        was = before.get(printing.source, base)
        rows = _steady(printing.rows)
        values = {key: row["value"] for key, row in rows.items()}
        # A job that starts a hundred times prints the same settings a hundred times.
        if last.get(printing.source) == values and (not changes or changes[-1].source == printing.source):
            continue
        last[printing.source] = values
        log = _facts_of_log(rows, fmt, several)
        facts = _without(was.facts, fmt, rows) | log | given
        fresh = {name: fact for name, fact in log.items() if (name, fact.value) not in printed}
        printed |= {(name, fact.value) for name, fact in fresh.items()}
        now = _context(derive(_void(facts, [given])), [], base.given)
        notes = (*_differences(was, now), *_overridden(given, fresh))
        # Settings of the file before are in force until a file prints its own, be they those of the beginning again.
        if notes or (changes and changes[-1].source != printing.source):
            before[printing.source] = _context(now.facts, notes, base.given)
            changes.append(SettingsChange(printing.source, printing.line_number or 0, before[printing.source]))
    return changes


def _void(facts: Mapping[str, Fact], given: Sequence[Mapping[str, Fact]]) -> dict[str, Fact]:
    """``facts`` without what the log prints of a recomputation, or of layers, that the user overrides."""
    overridden = {name for layer in given for name in layer}
    void = OF_RECOMPUTE - overridden if "recompute" in overridden else frozenset()
    void |= {"noop_layers"} - overridden if "num_layers" in overridden else frozenset()
    return {name: fact for name, fact in facts.items() if name not in void}


def without_noop_layers(facts: Mapping[str, Fact]) -> Mapping[str, Fact]:
    """``facts`` with as many layers as work: those of the model, and not of its pipeline."""
    if not {"num_layers", "noop_layers"} <= facts.keys():
        return facts
    layers = facts["num_layers"]
    idle = noop_layers({name: facts[name].value for name in ("num_layers", "noop_layers")})
    return {**facts, "num_layers": replace(layers, value=layers.value - len(idle))}


def _without_same_layers(given: Mapping[str, Fact], log: Mapping[str, Fact]) -> Mapping[str, Fact]:
    """``given`` without the layers of a model that are those of the ``log`` that work: it has the pipeline's too."""
    working = without_noop_layers(log)
    same = working is not log and "num_layers" in given and given["num_layers"].value == working["num_layers"].value
    return {name: fact for name, fact in given.items() if name != "num_layers"} if same else given


def _without(facts: Mapping[str, Fact], fmt: LogFormat, rows: Mapping[str, Row]) -> dict[str, Fact]:
    """``facts`` without derived ones and without those that ``rows`` print again, even as not set."""
    reprinted = {name.quantity for name in fmt.names if name.setting in rows}
    reprinted |= {choice.quantity for choice in fmt.choices if next(iter(choice.when)) in rows}
    return {name: fact for name, fact in facts.items() if not is_derived(fact) and name not in reprinted}


def _context(facts: Mapping[str, Fact], notes: Sequence[Note], given: frozenset[str]) -> RunContext:
    return RunContext({n: facts[n] for n in QUANTITY if n in facts}, tuple(notes), given)


def _steady(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Without the count of micro-batches, which is printed at every step of a growing batch."""
    return {key: row for key, row in rows.items() if row["kind"] != "microbatches"}


def _differences(was: RunContext, now: RunContext) -> Iterator[Note]:
    nothing = Fact(None, Origin("not set"))
    # The parameters are what the log counts, and no setting.
    for name in (name for name in QUANTITY if name != "model_parameters"):
        old, fact = was.facts.get(name, nothing), now.facts.get(name, nothing)
        if old.value != fact.value and not (is_derived(old) or is_derived(fact)):
            yield warning(
                "setting_changed_at_restart",
                name=name,
                before=old.value,
                origin_before=old.origin,
                after=fact.value,
                origin_after=fact.origin,
            )


def read_value(quantity: Quantity, text: str) -> Any:
    """The value of ``quantity`` as written in ``text``; None where the text gives none.

    Raises ValueError where the text is not of the quantity's kind.
    """
    if text in NOTHING:
        return None
    if quantity.kind == "text":
        return text
    if quantity.kind == "bool":
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    plain = regex.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    number = regex.fullmatch(r"\[?\s*(-?\d+(?:\.\d+)?)\s*\]?", plain)
    if number is None:
        raise ValueError(text)
    value = float(number.group(1))
    if quantity.kind == "float":
        return value
    if not value.is_integer() or abs(value) >= 2**53:
        raise ValueError(text)
    return int(value)


def _facts_of_log(printed: Mapping[str, Row], fmt: LogFormat, several: bool) -> dict[str, Fact]:
    """For each quantity the first name or choice of the format that applies."""
    facts: dict[str, Fact] = {}
    for name in fmt.names:
        if name.quantity not in facts and name.setting in printed and _holds(name.when, printed):
            fact = _fact(QUANTITY[name.quantity], printed[name.setting], several, name.scale)
            if fact is not None:
                facts[name.quantity] = fact
    for choice in fmt.choices:
        if choice.quantity not in facts and _holds(choice.when, printed):
            setting = next(iter(choice.when))
            rule = (
                f"{WITHOUT}{choice.without}"
                if choice.without
                else f"{setting.split(':')[1]} {printed[setting]['value']}"
            )
            origin = replace(_where(printed[setting], several), rule=rule)
            facts[choice.quantity] = Fact(read_value(QUANTITY[choice.quantity], choice.value), origin)
    return facts


def facts_of_other_formats(others: Sequence[tuple[LogFormat, pl.DataFrame]], several: bool) -> dict[str, Fact]:
    """Facts from the settings of other formats, where a setting has one value in the log; upper layers come first."""
    facts: dict[str, Fact] = {}
    for fmt, settings in sorted(others, key=lambda other: other[0].beneath):
        one = settings.filter(pl.col("value").n_unique().over("kind", "name") == 1)
        printed = {f"{row['kind']}:{row['name']}": row for row in reversed(list(one.iter_rows(named=True)))}
        for name, fact in _facts_of_log(printed, fmt, several).items():
            rule = ": ".join(filter(None, (fmt.name, fact.origin.rule)))
            facts.setdefault(name, replace(fact, origin=replace(fact.origin, rule=rule)))
    return facts


def _changed(settings: pl.DataFrame, fmt: LogFormat, several: bool) -> list[Note]:
    """A note for each setting of the format that has several values, where no step line shows which one counts."""
    conditions = {condition for choice in fmt.choices for condition in choice.when.items()}
    meant = {name.setting for name in fmt.names} | {s for s, value in conditions if value not in (ABSENT, PRESENT)}
    notes: dict[str, Note] = {}
    first: dict[str, Row] = {}
    for row in settings.iter_rows(named=True):
        key = f"{row['kind']}:{row['name']}"
        old = first.setdefault(key, row)
        if row["value"] != old["value"] and key in meant and row["kind"] != "microbatches":
            note = warning(
                "setting_has_two_values",
                name=row["name"],
                first=old["value"],
                origin=_where(old, several),
                other=row["value"],
                place=_where(row, several),
            )
            notes.setdefault(row["name"], note)
    return list(notes.values())


def _holds(when: Mapping[str, str], printed: Mapping[str, Mapping[str, Any]]) -> bool:
    absent = {key for key, pattern in when.items() if pattern == ABSENT}
    patterns = {key: pattern for key, pattern in when.items() if key not in absent}
    return absent.isdisjoint(printed) and all(
        key in printed and regex.fullmatch(pattern, printed[key]["value"]) for key, pattern in patterns.items()
    )


def _fact(quantity: Quantity, row: Mapping[str, Any], several: bool, scale: float) -> Fact | None:
    try:
        value = read_value(quantity, row["value"] if scale == 1 else f"{float(row['value']) * scale:.0f}")
    except (ValueError, KeyError):
        return None
    # A mixture of one expert is a dense model; Megatron-DeepSpeed prints [1] for it.
    if value is None or (quantity.name == "num_experts" and value <= 1):
        return None
    # A size of 0 is a placeholder of the framework, and so is every negative one.
    if quantity.kind == "int" and value < (quantity.least if quantity.flag else 0):
        return None
    return Fact(value, _where(row, several))


def _where(row: Mapping[str, Any], several: bool) -> Origin:
    return Origin("log", row["source"] if several else None, row["line_number"])


def _overridden(stronger: Mapping[str, Fact], weaker: Mapping[str, Fact]) -> Iterator[Note]:
    for name, fact in weaker.items():
        if name in stronger and stronger[name].value != fact.value:
            first = stronger[name]
            yield warning(
                "setting_overridden",
                name=name,
                value=first.value,
                origin=first.origin,
                other_origin=fact.origin,
                other=fact.value,
            )
