"""The dashboard of docs/grafana-dashboard.json, made from the registry of metrics."""

import json
from typing import Any

from analysis.export.exported_run import LOGGED, ExportedSeries, all_series
from analysis.export.openmetrics import PREFIX
from analysis.metrics import METRICS

# Units of columns by the names that Grafana gives them.
UNITS = {"ms": "ms", "ratio": "percentunit", "bytes": "decbytes"}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
CHOSEN = '{run=~"$run"}'
# Their names end with that of the data.
EVALUATIONS = {
    "refId": "A",
    "expr": '{__name__=~"logparse_evaluation_loss.*", run=~"$run"}',
    "datasource": SOURCE,
    "legendFormat": "{{run}} {{__name__}}",
}
WIDTH, HEIGHT, COLUMNS = 8, 7, 3


def dashboard() -> dict[str, Any]:
    """All figures of the chosen runs in a table, and a panel for each series."""
    columns = {one.column for one in all_series()}
    drawn = [one for one in all_series() if not _is_second(one, columns)]
    panels = [_figures(), *(_series(at, one, columns) for at, one in enumerate(drawn))]
    panels.append(_series(len(drawn), ExportedSeries("eval", "evaluation_loss", "", "losses of evaluations"), columns))
    panels[-1]["targets"] = [EVALUATIONS]
    return {
        "uid": "logparse-runs",
        "title": "Training runs",
        "tags": ["logparse"],
        "timezone": "browser",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "time": {"from": "now-7d", "to": "now"},
        "templating": {"list": [_source(), _runs()]},
        "annotations": {"list": []},
        "panels": [panel | {"id": number} for number, panel in enumerate(panels, 1)],
    }


def text() -> str:
    """The dashboard as a file, a line for each panel."""
    made = dashboard()
    panels = ",\n".join(f"  {json.dumps(panel)}" for panel in made["panels"])
    return json.dumps(made | {"panels": []}, indent=1).replace('"panels": []', f'"panels": [\n{panels}\n ]') + "\n"


def _is_second(one: ExportedSeries, columns: set[str]) -> bool:
    """Whether it is drawn next to the series that we compute."""
    return one.group == "logged" and one.column.removeprefix(LOGGED) in columns


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _runs() -> dict[str, Any]:
    query = f"label_values({PREFIX}run_info, run)"
    more = {"refresh": 2, "multi": True, "includeAll": True, "sort": 1, "label": "Run"}
    return {"name": "run", "type": "query", "datasource": SOURCE, "query": query, "definition": query, **more}


def _figures() -> dict[str, Any]:
    """A row for each run, a column for each metric."""
    targets = [_target(f"run_{m.column}", m.column) | {"format": "table", "instant": True} for m in METRICS]
    named = [
        {
            "matcher": {"id": "byName", "options": f"Value #{metric.column}"},
            "properties": [
                {"id": "displayName", "value": metric.label},
                {"id": "unit", "value": UNITS.get(metric.unit, "none")},
            ],
        }
        for metric in METRICS
    ]
    hidden = {"excludeByName": {"Time": True, "__name__": True, "instance": True, "job": True}}
    return {
        "type": "table",
        "title": "Runs",
        "datasource": SOURCE,
        "gridPos": {"x": 0, "y": 0, "w": WIDTH * COLUMNS, "h": HEIGHT},
        "targets": targets,
        "transformations": [{"id": "merge", "options": {}}, {"id": "organize", "options": hidden}],
        "fieldConfig": {"defaults": {}, "overrides": named},
    }


def _series(at: int, one: ExportedSeries, columns: set[str]) -> dict[str, Any]:
    targets = [_target(one.column, "A") | {"legendFormat": "{{run}}"}]
    if f"{LOGGED}{one.column}" in columns:
        targets.append(_target(f"{LOGGED}{one.column}", "B") | {"legendFormat": "{{run}}, printed"})
    place = {"x": at % COLUMNS * WIDTH, "y": HEIGHT * (1 + at // COLUMNS), "w": WIDTH, "h": HEIGHT}
    return {
        "type": "timeseries",
        "title": one.tag,
        "description": one.meaning,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": UNITS.get(one.unit, "none")}, "overrides": []},
    }


def _target(name: str, letter: str) -> dict[str, Any]:
    return {"refId": letter, "expr": f"{PREFIX}{name}{CHOSEN}", "datasource": SOURCE}


def _one_of(**named: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(named), "properties": named}


_TEXT, _NUMBER = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
_PLACE = _one_of(x=_NUMBER, y=_NUMBER, w={"type": "integer", "minimum": 1, "maximum": 24}, h=_NUMBER)
_QUERY = _one_of(
    refId=_TEXT,
    expr={"type": "string", "pattern": r'^(logparse_\w+\{|\{__name__=~"logparse_\w+\.\*", )run=~"\$run"\}$'},
    datasource={},
)
# What Grafana needs of a dashboard to import it.
SCHEMA = _one_of(
    uid={"type": "string", "pattern": "^[a-z-]{1,40}$"},
    title=_TEXT,
    schemaVersion={"type": "integer", "minimum": 36},
    templating=_one_of(list={"type": "array", "items": _one_of(name=_TEXT, type={"enum": ["datasource", "query"]})}),
    panels={
        "type": "array",
        "minItems": 2,
        "items": _one_of(
            id={"type": "integer", "minimum": 1},
            type={"enum": ["table", "timeseries"]},
            title=_TEXT,
            gridPos=_PLACE,
            datasource=_one_of(type={"const": "prometheus"}, uid={"const": "${datasource}"}),
            targets={"type": "array", "minItems": 1, "items": _QUERY},
            fieldConfig=_one_of(defaults={"type": "object"}, overrides={"type": "array"}),
        ),
    },
)
