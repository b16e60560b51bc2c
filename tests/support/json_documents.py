"""The schema of every JSON document, by the name of its file in docs/schema."""

from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

from json_schemas import (
    BOOLEAN,
    FREE,
    INTEGER,
    NUMBER,
    SCALAR,
    STRING,
    VERSION,
    Schema,
    array,
    closed,
    columns,
    described,
    described_as,
    fixed,
    mapping,
    nullable,
    of_kind,
    record,
    ref,
    short,
    typed,
    whole,
    with_unit,
)

from analysis.batch.record_runs import Recorded
from analysis.compare.bisect import Outcome, Placement
from analysis.compare.comparability import Change, Field, Kind, State
from analysis.compare.comparison import FailedRun, LostLoss
from analysis.compare.independent_records import LeftOut
from analysis.compare.loss_curves import Axis
from analysis.compare.loss_remarks import Remark
from analysis.compare.same_loss import LossDifference, LossReason
from analysis.compare.verdict import Effect, Reason, Verdict
from analysis.compare.work_difference import Less
from analysis.estimate.device_layout import Layout
from analysis.estimate.stages import Stage
from analysis.hardware.devices import Device, DevicePeak
from analysis.history.annotations import ANNOTATION_COLUMNS
from analysis.history.events import Acceptance, Event
from analysis.history.run_records import HEAVY, RUN_COLUMNS
from analysis.identify.matching import Candidate
from analysis.metrics import HEALTH, JUDGED, METRICS, OF_ROWS, RATES, Metric
from analysis.model.catalogue import Model
from analysis.nightly.cluster_nights import SlowNight
from analysis.nightly.job_steps import StepState
from analysis.nightly.job_verdict import News
from analysis.nightly.metric_verdict import Reason as NightReason
from analysis.nightly.regressions import RegressionState
from analysis.nightly.trend import ChangePoint
from analysis.present.document_parts import Short, tree_of
from analysis.present.views.compact import COMPARISON, NOTE, RUN
from analysis.present.views.short_ending import ENDING
from analysis.published.baselines import Baseline, Check
from analysis.run.checks.expectations import GapPart
from analysis.run.checks.self_checks import CheckResult
from analysis.run.checks.target_verdicts import Outcome as TargetOutcome
from analysis.run.rates.printed_rates import PREFIX, DeviceMfu, LoggedRate
from analysis.run.tables import BADPUT_COLUMNS, RANK_COLUMNS, RATE_COLUMNS, TIME_BREAKDOWN_COLUMNS
from analysis.run.useful.goodput import Reliability, Stretch
from analysis.run.useful.overheads import Overhead
from analysis.run.useful.remaining_time import Left
from analysis.stats.noise import Noise
from analysis.stats.prediction import Night
from analysis.watch.alarms import AlarmLevel
from analysis.watch.snapshot import NowAndSteady, RunStatus, Snapshot, TimeLeft
from logparse.context.dialects import Framework
from logparse.decode.read_run import Coverage
from logparse.draft.check import KnownLabel, ReadLine, UnknownLabel, UnreadLine
from logparse.failures.ending import Ending
from logparse.findings import Note, Origin
from logparse.schema import DECODED_COLUMNS, QUANTITIES

NOTES = array(ref("note"))
STRINGS = array(STRING)
VALUES = array(nullable(SCALAR))
VERDICT = typed(Verdict)
NULLABLE_STRING, NULLABLE_NUMBER = nullable(STRING), nullable(NUMBER)


def _definitions() -> dict[str, Schema]:
    whole_objects = _whole_objects()
    losses = _compare()["anyOf"][2]
    short_objects = {
        "short_run": _short(_run(), RUN, whole_objects),
        "short_ending": _short(record(Ending), ENDING, whole_objects),
        "short_comparison": _short(_comparison(), COMPARISON, whole_objects),
        "short_losses": _short(losses, COMPARISON, whole_objects),
    }
    return whole_objects | short_objects


def _short(schema: Schema, kind: Short, definitions: dict[str, Schema]) -> Schema:
    """The objects of ``schema`` that ``--compact`` prints, with how much each leaves out."""
    left: Schema = short(schema, kind.tree(), definitions)
    left["properties"]["omitted"] = described_as(mapping(INTEGER), described("short", "omitted"))
    left["required"].append("omitted")
    return left


def _whole_objects() -> dict[str, Schema]:
    return {
        "note": fixed(
            "Note", {"code": STRING, "level": typed(get_type_hints(Note)["level"]), "fields": FREE, "text": STRING}
        ),
        "origin": record(Origin),
        "fact": fixed("Fact", {"value": SCALAR, "origin": STRING, "from": ref("origin")}),
        "change": record(Change),
        "run": _run(),
        "metric": _metric(),
        "printed": record(LoggedRate),
        "rate": _rate(),
        "finding": _finding(),
        "night_metric": _night_metric(),
        "comparison": _comparison(),
        "loss": _loss(),
        "effect": record(Effect),
        "noise": record(Noise),
        "layout": _layout(),
        "ending": record(Ending),
    }


# analyze.


def _analyze() -> Schema:
    of_many = {"stands_out": nullable(ref("note")), "device_hours_by_ending": _hours()}
    keys = {"schema_version": VERSION, "runs": array(ref("run")), **of_many}
    return fixed("analyze", keys, optional=of_many)


def _hours() -> Schema:
    keys = {
        "state": STRING,
        "family": STRING,
        "runs": INTEGER,
        "device_hours": NUMBER,
        "runs_without_device_hours": INTEGER,
    }
    return array(fixed("ending_hours", keys))


def _run() -> Schema:
    return fixed(
        "run",
        {
            "name": STRING,
            "sources": STRINGS,
            "format": STRING,
            "framework": record(Framework, evidence=STRING),
            "coverage": record(Coverage),
            "versions": mapping(fixed("version", {"value": STRING, "origin": STRING})),
            "context": context(),
            "device": nullable(record(DevicePeak, origin=STRING, notes=NOTES)),
            "formula": _formula(),
            "metrics": _by_metric(ref("metric"), OF_ROWS, required=True),
            "printed": _printed(),
            "device_mfu": nullable(record(DeviceMfu)),
            "impossible": STRINGS,
            "rates": fixed("rates", dict.fromkeys(RATES, ref("rate"))),
            "goodput": NULLABLE_NUMBER,
            "time_to_train_seconds": NULLABLE_NUMBER,
            "time_breakdown": array(_frame(TIME_BREAKDOWN_COLUMNS, "part")),
            "overheads": array(_overhead()),
            "short": BOOLEAN,
            "reliability": _reliability(),
            "ranks": array(_frame(RANK_COLUMNS, "source")),
            "starts": nullable(INTEGER),
            "lost_steps": nullable(INTEGER),
            "planned": _planned(),
            "published": _published(),
            "requirements": array(_requirement()),
            "ending": nullable(typed(Ending)),
            "checks": array(record(CheckResult, omit=("forbids",), fields=FREE)),
            "notes": NOTES,
        },
    )


def context(*more: str) -> Schema:
    """Facts by the names of the glossary, each only where it is known; the command adds ``more`` of its own."""
    facts = {q.name: described_as(_fact(of_kind(q.kind)), with_unit(q.meaning, "")) for q in QUANTITIES}
    own = {name: described_as(ref("fact"), described("inputs", name)) for name in more}
    return closed(facts | own, [])


def _fact(value: Schema) -> Schema:
    return {"allOf": [ref("fact")], "properties": {"value": value}}


def _frame(of: Any, *known: str) -> Schema:
    """The rows of a frame, without the name of the run."""
    keys = columns(of, omit=("run",), known=known)
    return closed(keys, list(keys))


def _formula() -> Schema:
    ends = fixed("recomputed", {"layers": NUMBER, "mtp": NUMBER, "modules": STRINGS})
    return fixed(
        "formula",
        {
            "name": STRING,
            "recompute_factor": nullable(NUMBER),
            "recomputed": nullable(array(ends)),
            "recompute": NULLABLE_STRING,
            "recompute_origin": NULLABLE_STRING,
            "flops_per_iteration": NULLABLE_NUMBER,
        },
    )


def _metric() -> Schema:
    numbers = ("median", "mean", "p10", "p90")
    keys = {"unit": STRING, **dict.fromkeys(numbers, NULLABLE_NUMBER), "n": INTEGER}
    more: dict[str, Schema] = {"impossible": {"const": True}, "range": typed(tuple[float, float])}
    return nullable(fixed("metric", keys | more, optional=more))


def _printed() -> Schema:
    rates = [column for column in DECODED_COLUMNS if column.name.startswith(PREFIX)]
    return closed(
        {c.name.removeprefix(PREFIX): described_as(ref("printed"), with_unit(c.meaning, c.unit)) for c in rates}, []
    )


def _rate() -> Schema:
    keys = columns(RATE_COLUMNS, omit=("run", "rate")) | {"covers": described_as(STRING, "The steps it covers.")}
    return closed(keys, list(keys))


def _overhead() -> Schema:
    more = {"cost": NULLABLE_NUMBER, "label": STRING, "in_steps": BOOLEAN, "advice": nullable(ref("note"))}
    return record(Overhead, optional=("cost",), **more)


def _reliability() -> Schema:
    return record(
        Reliability,
        omit=("curve",),
        badput=array(_frame(BADPUT_COLUMNS, "type")),
        worst_hour=nullable(record(Stretch)),
        longest_dead=nullable(record(Stretch)),
    )


_SENTENCE = {"sentence": STRING, "findings": NOTES}


def _planned() -> Schema:
    numbers = dict.fromkeys(("planned", "planned_to", "measured"), NULLABLE_NUMBER)
    row = fixed("planned_row", {"name": STRING, "label": STRING, "unit": STRING, **numbers, **_SENTENCE})
    return fixed(
        "planned",
        {
            "rows": array(row),
            "left": nullable(record(Left)),
            "gap": array(record(GapPart, label=STRING)),
            "mfu_ceiling": NULLABLE_NUMBER,
            "assumed": STRINGS,
            "sentences": STRINGS,
        },
    )


def _published() -> Schema:
    match = {"name": STRING, "share": NUMBER, **_SENTENCE}
    return fixed(
        "published",
        {
            "matches": array(fixed("match", match)),
            "differing": array(fixed("match", match | {"differs_in": STRINGS})),
            "nearest": STRINGS,
            "findings": NOTES,
            "sentences": STRINGS,
        },
    )


def _requirement() -> Schema:
    keys = {
        "require": STRING,
        "figure": STRING,
        "comparison": STRING,
        "limit": NUMBER,
        "value": NULLABLE_NUMBER,
        "outcome": typed(TargetOutcome),
        **_SENTENCE,
    }
    return fixed("requirement", keys)


# compare, gate, bisect.


def _compare() -> Schema:
    several = fixed("compare", {"schema_version": VERSION, "comparisons": array(ref("comparison"))})
    of_losses = {
        "schema_version": VERSION,
        **dict.fromkeys(("job", "baseline", "candidate"), STRING),
        "loss": ref("loss"),
        "requirements": array(_requirement()),
    }
    losses = fixed("compared_losses", of_losses)
    several_losses = fixed("compare", {"schema_version": VERSION, "comparisons": array(losses)})
    return {"anyOf": [ref("comparison"), several, losses, several_losses]}


def _loss() -> Schema:
    keys = {
        "axis": typed(Axis),
        "reason_code": nullable(typed(LossReason)),
        "differences": mapping(record(LossDifference, omit=("column", "curve"), text=STRING)),
        "remarks": array(record(Remark, text=STRING)),
    }
    return fixed("loss", keys)


def _agreement() -> Schema:
    keys = {"steps": INTEGER, "largest": NUMBER, "largest_at": INTEGER, "final": NUMBER, "final_at": INTEGER}
    return fixed("losses", keys | {"undefined": INTEGER})


def _comparison() -> Schema:
    side = fixed("side", {"asked": STRING, "releases": STRINGS, "runs": array(_side_run())})
    changes = array(ref("change"))
    return fixed(
        "comparison",
        {
            "schema_version": VERSION,
            "job": STRING,
            "verdict": nullable(VERDICT),
            "threshold": NUMBER,
            "baseline": side,
            "candidate": side,
            "comparable": BOOLEAN,
            "fields": mapping(record(Field, omit=("name",), baseline=VALUES, candidate=VALUES, state=typed(State))),
            "metrics": _by_metric(ref("finding")),
            "losses": nullable(_agreement()),
            "losses_reason": NULLABLE_STRING,
            "losses_reason_code": nullable(typed(LossReason)),
            "loss": nullable(ref("loss")),
            "requirements": array(_requirement()),
            "losses_not_finite": fixed(
                "not_finite", dict.fromkeys(("baseline", "candidate"), nullable(record(LostLoss)))
            ),
            "changes": changes,
            "incidental": changes,
            "told_by_one_side": changes,
            "less_work": _less(),
            "noise": nullable(ref("noise")),
            "failed": fixed("failed", dict.fromkeys(("baseline", "candidate"), array(record(FailedRun)))),
            "left_out": array(
                fixed(
                    "left_out",
                    {"name": STRING, "run_id": NULLABLE_STRING, "reason": STRING, "reason_code": _reason_left_out()},
                )
            ),
            "perhaps_one_job": array(STRINGS),
        },
    )


def _reason_left_out() -> Schema:
    return typed(get_type_hints(LeftOut)["reason"])


def _side_run() -> Schema:
    keys = {"run_id": NULLABLE_STRING, "name": NULLABLE_STRING, "release": NULLABLE_STRING, **_annotations()}
    return fixed("side_run", keys, optional=ANNOTATION_COLUMNS)


def _annotations() -> dict[str, Schema]:
    acceptance = record(Acceptance, omit=("run_id",))
    keys = {"excluded": NULLABLE_STRING, "annotation": NULLABLE_STRING, "acceptances": array(acceptance)}
    assert list(keys) == list(ANNOTATION_COLUMNS)
    return keys


def _less() -> Schema:
    return array(record(Less, baseline=NULLABLE_NUMBER, candidate=NULLABLE_NUMBER))


def _finding() -> Schema:
    """A metric of a comparison; one that is judged has a verdict too."""
    runs = array(INTEGER)
    without = fixed(
        "without_outliers",
        {"runs": runs, "effect": nullable(ref("effect")), "verdict": VERDICT, "reason_code": typed(Reason)},
    )
    always = {"unit": STRING, "runs": runs, "effect": nullable(ref("effect")), "threshold": NUMBER}
    judged = {
        "verdict": VERDICT,
        "reason": STRING,
        "reason_code": typed(Reason),
        "p_family": NULLABLE_NUMBER,
        "odd_runs": STRINGS,
        "noise": nullable(ref("noise")),
        "outliers": array(
            fixed("outlier", {"name": STRING, "side": {"enum": ["baseline", "candidate"]}, "off": NUMBER})
        ),
        "verdict_with_outliers": VERDICT,
        "without_outliers": nullable(without),
    }
    return fixed("finding", always | judged, optional=judged)


def _by_metric(schema: Schema, metrics: Iterable[Metric] = (*METRICS, *HEALTH), required: bool = False) -> Schema:
    """``schema`` by the name of a metric; not every document has every one, unless ``required``."""
    keys = {m.column: described_as(schema, with_unit(m.meaning, m.unit)) for m in metrics}
    return closed(keys, list(keys) if required else [])


def _gate() -> Schema:
    return {"anyOf": [ref("comparison"), _jobs(), _jobs_of_sides(), _backtest()]}


def _jobs_of_sides() -> Schema:
    keys = {"schema_version": VERSION, "verdict": nullable(VERDICT), "comparisons": array(ref("comparison"))}
    return fixed("jobs_of_sides", keys | dict.fromkeys(("without_baseline", "without_candidate"), STRINGS))


def _backtest() -> Schema:
    night = {
        "day": STRING,
        "verdict": nullable(VERDICT),
        "fails": BOOLEAN,
        "new": mapping(STRINGS),
        "still_open": STRINGS,
        "cleared": STRINGS,
        "problem": NULLABLE_STRING,
    }
    return fixed("backtest", {"schema_version": VERSION, "nights": array(fixed("judged_night", night))})


def _refused() -> Schema:
    return fixed("refused", {"before": VALUES, "newest": VALUES})


def _regressions() -> Schema:
    run = fixed("linked_run", dict.fromkeys(("run_id", "name", "release", "when"), STRING) | {"url": NULLABLE_STRING})
    regression = {
        "job": STRING,
        "owners": STRINGS,
        "state": typed(RegressionState),
        "changes": mapping(NULLABLE_NUMBER),
        "first_bad": run,
        "last_good": nullable(run),
        "cleared": NULLABLE_STRING,
        "block": NULLABLE_STRING,
        "ended": nullable(fixed("ended_series", {"when": STRING, "changed": mapping(_refused())})),
        **dict.fromkeys(("reason", "issue", "until", "until_release", "user"), NULLABLE_STRING),
    }
    found = array(fixed("regression", regression))
    return fixed("regressions", {"schema_version": VERSION, "regressions": found})


def _jobs() -> Schema:
    newest = fixed("newest", dict.fromkeys(("run_id", "name", "release", "when"), STRING))
    ended = {"name": STRING, "since": NULLABLE_STRING, "last_run": STRING, "when": STRING}
    ended |= {"metrics": mapping(NULLABLE_NUMBER), "changed": mapping(_refused())}
    accepted = fixed(
        "accepted",
        {
            "metric": STRING,
            "change": NULLABLE_NUMBER,
            "since": STRING,
            **dict.fromkeys(("reason", "issue", "until", "until_release"), NULLABLE_STRING),
            "text": STRING,
        },
    )
    hidden = {"metric": STRING, "change": NULLABLE_NUMBER, "run_id": STRING, "excluded": STRING, "accepted": BOOLEAN}
    job = fixed(
        "job",
        {
            "name": STRING,
            "owners": STRINGS,
            "baseline": STRING,
            "verdict": nullable(VERDICT),
            "news": nullable(typed(News)),
            "runs": INTEGER,
            "newest": newest,
            "metrics": _by_metric(ref("night_metric")),
            "comparable": BOOLEAN,
            "refused": mapping(_refused()),
            "refusal": NULLABLE_STRING,
            "idle_days": INTEGER,
            "failed_nights": INTEGER,
            "accepted": array(accepted),
            "hidden": array(fixed("hidden", hidden)),
            "ended": nullable(fixed("ended_job", ended)),
            "failed": nullable(record(LeftOut)),
            "missing": BOOLEAN,
            "missing_before": BOOLEAN,
            "worse_before": BOOLEAN,
            "less_work": _less(),
            "requirements": array(_requirement()),
            "since": NULLABLE_STRING,
            "changes": array(ref("change")),
            "changed": mapping(_refused()),
            "steps": array(_step()),
            "testbeds": mapping(_by_metric(_testbed())),
            "left_out": array(record(LeftOut)),
        },
    )
    night = nullable(record(SlowNight))
    return fixed(
        "gate", {"schema_version": VERSION, "verdict": nullable(VERDICT), "slow_night": night, "jobs": array(job)}
    )


def _step() -> Schema:
    """A change of the level of a job."""
    run = fixed("step_run", dict.fromkeys(("run_id", "name", "release", "when"), STRING))
    keys = {
        "state": typed(StepState),
        "is_news": BOOLEAN,
        "since": run,
        "last_good": nullable(run),
        "ended": NULLABLE_STRING,
        "block": NULLABLE_STRING,
        "metrics": mapping(NULLABLE_NUMBER),
        "drift": BOOLEAN,
        "change_a_day": NULLABLE_NUMBER,
        "slow": BOOLEAN,
        "causes": array(ref("change")),
        **dict.fromkeys(("reason", "issue", "until", "until_release"), NULLABLE_STRING),
    }
    return fixed("step", keys)


def _testbed() -> Schema:
    return fixed("testbed", {"verdict": VERDICT, "value": NULLABLE_NUMBER, "change": NULLABLE_NUMBER})


def _night_metric() -> Schema:
    keys = {
        "verdict": VERDICT,
        "reason": STRING,
        "reason_code": typed(NightReason),
        "unit": STRING,
        "value": NULLABLE_NUMBER,
        "threshold": NUMBER,
        "expected": nullable(record(Night)),
        "since": NULLABLE_STRING,
        "p_worse": NULLABLE_NUMBER,
        "p_family": NULLABLE_NUMBER,
    }
    return fixed("night_metric", keys)


def _bisect() -> Schema:
    change = {"kind": typed(Kind), "name": STRING, "good": STRING, "bad": STRING}
    level = fixed("level", {"value": NUMBER, "reach": NUMBER, "near": NUMBER, "runs": INTEGER})
    trial = {
        "run_id": STRING,
        "name": STRING,
        "release": NULLABLE_STRING,
        "value": NUMBER,
        "change": NUMBER,
        "stands": typed(Placement),
        **dict.fromkeys(("as_good", "as_bad", "beside", "remain"), STRINGS),
    }
    return fixed(
        "bisect",
        {
            "schema_version": VERSION,
            "job": STRING,
            "metric": {"enum": list(JUDGED)},
            "unit": STRING,
            "outcome": typed(Outcome),
            "good": level,
            "bad": level,
            "effect": NULLABLE_NUMBER,
            "named": STRINGS,
            **dict.fromkeys(("explained", "rest"), NULLABLE_NUMBER),
            "rest_is_noise": nullable(BOOLEAN),
            "candidates": array(fixed("candidate", change | {"remains": BOOLEAN})),
            "trials": array(fixed("trial", trial)),
            "next": array(fixed("next", {"kind": typed(Kind), "name": STRING, "value": STRING})),
            "runs_needed": nullable(INTEGER),
            "only_one_side_tells": STRINGS,
        },
    )


# History.


def _record() -> Schema:
    return fixed("record", {"schema_version": VERSION, "runs": array(record(Recorded))})


_PAIRED = ("labels", "versions", "settings", "landmarks", "origins")


def _recorded(heavy: bool) -> dict[str, Schema]:
    """A row of history; ``heavy`` is with the columns that a list leaves out."""
    traced = fixed("traced", {"value": STRING, "origin": NULLABLE_STRING, "from": nullable(ref("origin"))})
    origin = fixed("traced", {"origin": NULLABLE_STRING, "from": nullable(ref("origin"))})
    pairs = {"versions": traced, "origins": origin}
    known = ("run_id", "name", "format", "formula", "step_lines", "counted_rows", "ending_state", "ending_family")
    known = (*known, "schema_version")
    keys = columns([c for c in RUN_COLUMNS if heavy or c.name not in HEAVY], known=known)
    keys["ending"] = described_as(typed(Ending), keys["ending"]["description"])
    for name in keys.keys() & set(_PAIRED):
        keys[name] = described_as(mapping(pairs.get(name, STRING)), keys[name]["description"])
    return keys


def _history_list() -> Schema:
    own = fixed("recorded", {"release": STRING, **_annotations(), "verdict": nullable(VERDICT)})["properties"]
    row = _recorded(heavy=False) | own
    keys = {"schema_version": VERSION, "runs": array(closed(row, list(row))), "device_hours_by_ending": _hours()}
    return fixed("history", keys)


def _history_show() -> Schema:
    event = record(Event, labels=mapping(NULLABLE_STRING))
    own = fixed("recorded", {"release": STRING, **_annotations(), "events": array(event)})["properties"]
    row = _recorded(heavy=True) | own
    run = closed(row, list(row))
    return {"anyOf": [run, array(run)]}


def _trend() -> Schema:
    place = {"at": INTEGER, "run_id": STRING, "name": STRING, "release": STRING, "when": NULLABLE_STRING}
    run = place | {"group": NULLABLE_STRING, "value": NUMBER, **_annotations()}
    group = {"group": NULLABLE_STRING, "runs": INTEGER, **dict.fromkeys(("median", "p10", "p90"), NUMBER)}
    series = fixed(
        "series",
        {
            "name": STRING,
            "metric": {"enum": list(JUDGED)},
            "unknown_fields": STRINGS,
            "unit": STRING,
            "runs": array(fixed("series_run", run, optional=ANNOTATION_COLUMNS)),
            "off": STRINGS,
            "newest_off": NULLABLE_NUMBER,
            "drift": NULLABLE_NUMBER,
            "groups": array(fixed("group", group | {"first": INTEGER, "last": INTEGER})),
            "changes": array(record(ChangePoint, changes=array(ref("change")), change=NUMBER)),
        },
    )
    return fixed("trend", {"schema_version": VERSION, "series": array(series)})


# estimate, formulas, and what is known.


def _estimate() -> Schema:
    figure = fixed(
        "figure",
        {
            "unit": STRING,
            "value": {"type": ["number", "boolean", "null"]},
            "formula": STRING,
            "worked": STRING,
            "source": STRING,
            "lacks": STRINGS,
        },
    )
    layouts = dict.fromkeys(("smallest", "smallest_at_all", "smallest_recomputed"), nullable(ref("layout")))
    return fixed(
        "estimate",
        {
            "schema_version": VERSION,
            "name": NULLABLE_STRING,
            "context": context("network_gbits"),
            "figures": mapping(figure),
            "layout": nullable(ref("layout")),
            "layouts": array(ref("layout")),
            **layouts,
            "notes": NOTES,
        },
    )


def _layout() -> Schema:
    stage = record(Stage, optional=("rule_bytes",), total_bytes=NUMBER, rule_bytes=NUMBER)
    fits = {"fits": nullable(BOOLEAN), "memory_bytes": NULLABLE_NUMBER, "overflows": array(INTEGER)}
    return record(Layout, devices=INTEGER, stages=array(stage), **fits)


def _formulas() -> Schema:
    peak = {
        **dict.fromkeys(("tflops_per_second", "low", "high"), NUMBER),
        "ratio": {"enum": ["mfu", "hfu"]},
        "devices": STRINGS,
        "sentence": STRING,
    }
    return fixed(
        "formulas",
        {
            "schema_version": VERSION,
            "name": STRING,
            "logged_tflops_per_second_per_device": NULLABLE_NUMBER,
            "scale": NUMBER,
            "matches": STRINGS,
            "sentence": STRING,
            "findings": NOTES,
            "formulas": array(record(Candidate)),
            "implied_peak": nullable(fixed("implied_peak", peak)),
            "notes": NOTES,
        },
    )


def _formats() -> Schema:
    keys = {
        "name": STRING,
        "title": STRING,
        "package": NULLABLE_STRING,
        "markers": STRINGS,
        "labels": mapping(STRING),
        "samples": STRINGS,
    }
    return array(fixed("formats", keys))


def _formats_test() -> Schema:
    return fixed(
        "formats_test",
        {
            "format": STRING,
            "logs": STRINGS,
            "complete": BOOLEAN,
            "lines": INTEGER,
            "read": INTEGER,
            "unread": mapping(INTEGER),
            "unread_lines": array(record(UnreadLine)),
            "unknown_labels": array(record(UnknownLabel)),
            "labels": array(record(KnownLabel)),
            "read_lines": array(record(ReadLine, row=mapping(nullable(SCALAR)))),
        },
    )


def _config() -> Schema:
    keys = {"name": STRING, "value": {}, "origin": NULLABLE_STRING, "from": nullable(ref("origin"))}
    settings = array(fixed("setting", keys))
    return fixed("config", {"schema_version": VERSION, "project_file": NULLABLE_STRING, "settings": settings})


def _baselines() -> Schema:
    check = record(Check, agrees=BOOLEAN)
    return array(
        record(
            Baseline,
            omit=("rounding",),
            sizes=mapping({"type": ["integer", "boolean"]}),
            contradicts_itself=BOOLEAN,
            checks=array(check),
        )
    )


# File, title, what prints it, schema.
def _diagnose() -> Schema:
    run = fixed("run", {"name": STRING, "ending": typed(Ending)})
    one, several = ({"schema_version": VERSION, **keys} for keys in ({"ending": typed(Ending)}, {"runs": array(run)}))
    return {"anyOf": [fixed("diagnose", one), fixed("diagnose", several)]}


def _watch() -> Schema:
    """A line of ``watch --jsonl``: a run at a look, or an alarm that begins or ends."""
    alarm = {"code": STRING, "level": typed(AlarmLevel), "run": STRING, "since": STRING, "fields": FREE}
    alarm |= {"origin": nullable(ref("origin")), "text": STRING}
    largest = fixed("largest_overhead", {"cause": STRING, "share": NUMBER, "seconds": NUMBER})
    shown = record(
        Snapshot,
        omit=("status", "losses"),
        left=nullable(record(TimeLeft, omit=("ends_at",), ends_at=NULLABLE_STRING)),
        figures=array(record(NowAndSteady)),
        largest=nullable(largest),
    )
    state = {"schema_version": VERSION, "kind": {"const": "state"}, "at": STRING, "run": STRING}
    state |= {"status": typed(RunStatus), "waiting": STRINGS, "refusal": NULLABLE_STRING, "snapshot": nullable(shown)}
    metrics = _by_metric(ref("metric"), OF_ROWS, required=True)
    state |= {"metrics": nullable(metrics), "ending": nullable(ref("ending")), "alarms": array(fixed("alarm", alarm))}
    state["notes"] = NOTES
    news = {"schema_version": VERSION, "kind": {"const": "alarm"}, "at": STRING, "state": {"enum": ["begins", "ends"]}}
    return {"anyOf": [fixed("watch_state", state), fixed("alarm", news | alarm)]}


def _self_check() -> Schema:
    keys = {"code": STRING, "passed": BOOLEAN, "fields": FREE, "wrong": STRINGS, "remedy": NULLABLE_STRING}
    whole_check = {"schema_version": VERSION, "version": STRING, "passed": BOOLEAN}
    return fixed("self_check", whole_check | {"checks": array(fixed("installation_check", keys))})


def _short_runs() -> Schema:
    whole_document = _analyze()
    runs = {"runs": described_as(array(ref("short_run")), described("analyze", "runs"))}
    note = short(ref("note"), tree_of(NOTE.split()), _whole_objects())
    outliers = {"stands_out": described_as(nullable(note), described("analyze", "stands_out"))}
    return whole_document | {"properties": whole_document["properties"] | runs | outliers}


def _short_comparisons() -> Schema:
    one = [ref("short_comparison"), ref("short_losses")]
    several = {"schema_version": VERSION, "comparisons": array({"anyOf": one})}
    return {"anyOf": [*one, fixed("compare", several)]}


def _short_endings() -> Schema:
    run = fixed("run", {"name": STRING, "ending": ref("short_ending")})
    documents = ({"ending": ref("short_ending")}, {"runs": array(run)})
    return {"anyOf": [fixed("diagnose", {"schema_version": VERSION, **keys}) for keys in documents]}


DOCUMENTS: dict[str, tuple[str, str, Callable[[], Schema]]] = {
    "analyze": ("Analyzed runs", "logparse analyze --json, logparse merge --json", _analyze),
    "analyze-compact": ("Analyzed runs, short", "logparse analyze --compact", _short_runs),
    "compare": ("Compared sides", "logparse compare --json", _compare),
    "compare-compact": ("Compared sides, short", "logparse compare --compact", _short_comparisons),
    "gate": ("Verdict of a gate", "logparse gate --json", _gate),
    "trend": ("Trend over recorded runs", "logparse trend --json", _trend),
    "bisect": ("Search for the cause of a slowdown", "logparse bisect --json", _bisect),
    "record": ("Runs that were recorded", "logparse record --json", _record),
    "history-list": ("List of recorded runs", "logparse history list --json", _history_list),
    "history-regressions": ("Regressions of all jobs", "logparse history regressions --json", _regressions),
    "history-show": ("Recorded runs, one or a list", "logparse history show", _history_show),
    "estimate": ("Planned job", "logparse estimate --json", _estimate),
    "formulas": ("FLOPs formula of a log", "logparse formulas --json", _formulas),
    "formats": ("Log formats", "logparse formats --json", _formats),
    "formats-test": ("Test of a log format", "logparse formats test --json", _formats_test),
    "hardware": ("Devices and their peaks", "logparse hardware --json", lambda: array(record(Device))),
    "models": ("Known models", "logparse models --json", lambda: array(record(Model))),
    "baselines": ("Published training rates", "logparse baselines --json", _baselines),
    "config": ("Settings in effect", "logparse config --json", _config),
    "self-check": ("Checks of an installation", "logparse self-check --json", _self_check),
    "diagnose": ("Why a run stopped", "logparse diagnose --json", _diagnose),
    "diagnose-compact": ("Why a run stopped, short", "logparse diagnose --compact", _short_endings),
    "watch": ("Runs that are watched, a line each", "logparse watch --jsonl", _watch),
}


def schema_of(name: str) -> Schema:
    """The schema of one document."""
    title, command, schema = DOCUMENTS[name]
    return whole(title, f"Printed by {command}.", schema(), _definitions())
