"""A drafted format as the TOML file that it becomes: what is sure as it is read, what is not as a comment."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import regex

from analysis.present.views.first_screen import rate_rows
from analysis.run.run import Run
from logparse.decode.values import group_names
from logparse.draft.draft import Draft, reading_table
from logparse.draft.labels import DraftLabel
from logparse.language import msg, some, tr, visible
from logparse.masking import mask_text

# What a draft does not know of the whole, and of one label.
OF_ALL: Mapping[str, str] = {
    "no_time": msg("no step time, rate or runtime found: without timestamps there are no rates"),
    "epochs": msg("the increasing number counts epochs, not steps"),
    "no_loss": msg("no loss found"),
    "two_counters": msg("the line has two step counters: check which of them the time is of"),
    "starts_again": msg(
        "the step number restarts, for example in each epoch: prefer a label that counts from the start of training"
    ),
}
OF_LABEL: Mapping[str, str] = {
    "unit": msg("its unit is not printed"),
    "factor": msg("the suffix changes the size of the number: add its factor as scale"),
    "column": msg("its meaning is unclear"),
    "grows": msg("it increases: a runtime, or a growing step time"),
}
FACTORS: Mapping[str, str] = {
    "elapsed_time_per_iteration_ms": msg("scale 1000 if it is in s"),
    "max_memory_allocated_bytes": msg("scale 1073741824 if it is in GiB"),
}


def draft_toml(draft: Draft, name: str, read: int, others: int, rate: str = "") -> str:
    """The text of the file. ``read`` of the lines were read by it, ``others`` hold its marker and were not.

    ``rate`` is the sentence of ``rate_text``.
    """
    last = ("", *_comment(rate)) if rate else ()
    return "\n".join((*_head(draft, name, read, others), *_patterns(draft.table), *_labels(draft), *last)) + "\n"


def rate_text(run: Run | None) -> str:
    """What the log gives by the draft: the step time, and the throughput if the sizes are known.

    ``run`` is None where the draft gives no run.
    """
    rows = [] if run is None else rate_rows(run)
    if not rows:
        return tr("no rate: with this draft neither the step time nor a throughput is known")
    values = (f"{row.label} {' '.join(filter(None, (row.value, row.explanation)))}" for row in rows)
    return tr("rate with this draft: {values}", values=tr("; ").join(values))


def _head(draft: Draft, name: str, read: int, others: int) -> Iterator[str]:
    yield from _comment(
        tr("drafted from {name}: reads {n} lines such as line {line}", name=name, n=read, line=draft.line_number)
    )
    yield from _comment(f"  {' '.join(draft.example.split())[:160]}")
    if others:
        yield from _comment(tr("{n} lines like these are not read; `logparse formats test` shows why", n=others))
    for doubt in draft.doubts:
        yield from _comment(tr(OF_ALL[doubt]))
    yield ""


def _comment(text: str) -> Iterator[str]:
    yield f"# {visible(mask_text(text))}"


def _patterns(table: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{name} = {_toml(value)}" for name, value in table.items() if name not in ("labels", "ignored"))
    if table.get("ignored"):
        yield f"ignored = {_toml(table['ignored'])}"


def _labels(draft: Draft) -> Iterator[str]:
    if "labels" not in draft.table:
        return
    yield ""
    yield "[labels]"
    for label in draft.labels:
        if label.reading:
            settings = reading_table(label.reading)
            yield f"{_key(label.label)} = {_toml(settings['column'] if len(settings) == 1 else settings)}"
    for label in draft.labels:
        if label.doubt and label.may_be:
            yield from _doubtful(label)


def _doubtful(label: DraftLabel) -> Iterator[str]:
    """A comment for each column that ``label`` may fill, to be taken for a line of the file."""
    fields = {"name": label.label or '""', "value": label.value, "reason": tr(OF_LABEL[label.doubt or "column"])}
    yield from _comment(tr("{name} ({value}): {reason}; choose a line and remove it from ignored", **fields))
    for column in label.may_be:
        settings = {"column": column, "scale": label.scale if label.scale != 1 else 1, "suffix": label.suffix}
        settings = {name: value for name, value in settings.items() if value not in (1, "")}
        factor = f"  # {tr(FACTORS[column])}" if label.doubt == "unit" and column in FACTORS else ""
        yield f"# {_key(label.label)} = {_toml(settings)}{factor}"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if float(f"{value:g}") == value and value < 1e6 else repr(value)


def _text(value: str) -> str:
    """A text in quotes between which nothing is to be escaped, where there are such."""
    free = value.isprintable() and not value.endswith("'") and "'''" not in value
    if free and ("\\" in value or '"' in value):
        quote = "'" if "'" not in value else "'''"
        return f"{quote}{value}{quote}"
    return _quoted(value)


def _quoted(value: str) -> str:
    """A text with escapes as JSON has them; TOML allows no DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(label: str) -> str:
    return label if regex.fullmatch(r"[A-Za-z0-9_-]+", label) else _quoted(label)


def wrote(path: str, draft: Draft) -> str:
    """What was written, and what comes next."""
    columns = (label.reading.column for label in draft.labels if label.reading)
    names = some(list(dict.fromkeys((*group_names(draft.head), *columns))), 8)
    return tr(
        "wrote {path}, which reads {names}; check it with: {command}",
        path=path,
        names=names,
        command=f"logparse formats test {path} LOG",
    )
