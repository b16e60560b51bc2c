"""What every command that reads a log does first: the log, what its numbers mean, what is known of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.pipeline.inputs import facts_of_flags, facts_of_model, read_config
from logparse.context.dialects import Interpretation, interpret
from logparse.context.run_context import Fact, RunContext, SettingsChange, build_changes, build_context
from logparse.findings import Origin
from logparse.read.parse import ParsedLog, Watch, read_run


@dataclass(frozen=True)
class Loaded:
    """One run, read and understood."""

    log: ParsedLog
    meaning: Interpretation
    context: RunContext
    changes: tuple[SettingsChange, ...]


@dataclass(frozen=True)
class Given:
    """What the user gave beside the logs: layers of facts, strongest first, and options of the config file."""

    layers: tuple[Mapping[str, Fact], ...]
    options: Mapping[str, Any]
    file: Path | None = None


def gather(given: Mapping[str, Any], model: str | None, config: Path | None) -> Given:
    """Put flags, model and config file in order. A model that the file names is weaker than the file's own values."""
    from_file, options = read_config(config)
    of_file = {} if model else facts_of_model(options.get("model"))
    return Given((facts_of_flags(given), facts_of_model(model), from_file, of_file), options, config)


def load(
    logs: Sequence[str],
    given: Given,
    log_format: str | None = None,
    strict: bool = False,
    name: str | None = None,
    dialect: str | None = None,
    watch: Watch | None = None,
) -> Loaded:
    """Read ``logs`` as one run."""
    log = read_run(logs, log_format, strict, name, watch)
    several = len(log.sources) > 1
    context = build_context(log.settings, log.format, given.layers, several, _facts_of_lines(log), log.steps)
    changes = build_changes(context, log.settings, log.format, several, log.steps)
    return Loaded(log, interpret(log, dialect), context, tuple(changes))


def _facts_of_lines(log: ParsedLog) -> dict[str, Fact]:
    """What every step line prints alike."""
    facts = {}
    for name in ("global_batch_size", "seq_length"):
        printed = log.steps[name].unique()
        if len(printed) == 1 and printed[0] is not None:
            facts[name] = Fact(printed[0], Origin("step lines"))
    return facts
