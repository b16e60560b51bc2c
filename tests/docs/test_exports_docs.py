"""What docs/exports.md shows is what happens: its commands, its options, and the dashboard it names."""

import json

import jsonschema
import pytest
import regex
from grafana import SCHEMA, text
from helpers import ROOT, run_logparse, run_shown

TEXT = (ROOT / "docs/exports.md").read_text(encoding="utf-8")
COMMANDS = regex.search(r"```sh\n(.*?)```", TEXT, regex.DOTALL)[1].splitlines()
DASHBOARD = ROOT / "docs/grafana-dashboard.json"
# These libraries take a second or more to import.
DEAR = ("mlflow", "swanlab")
LIBRARIES = {"tensorboard": "tensorboard", "openmetrics": "prometheus_client", "mlflow": "mlflow", "swanlab": "swanlab"}
WRITTEN = {
    "tensorboard": "tb/run/events.out.tfevents.logparse",
    "openmetrics": "metrics/run.prom",
    "csv": "tables/runs.csv",
    "jsonl": "tables/steps.jsonl",
    "mlflow": "mlruns/*/*/artifacts/report.html",
    "swanlab": "swanlog/run-*/*.swanlab",
}


def target(command: str) -> str:
    return command.split("--to ")[1].split()[0]


def test_every_target_has_a_command():
    assert sorted(map(target, COMMANDS)) == sorted(WRITTEN)


@pytest.mark.usefixtures("analysed_once")
@pytest.mark.parametrize(
    "command",
    [pytest.param(c, id=target(c), marks=[pytest.mark.slow] * (target(c) in DEAR)) for c in COMMANDS],
)
def test_every_command_runs(command, tmp_path):
    if target(command) in LIBRARIES:
        pytest.importorskip(LIBRARIES[target(command)])
    done = run_shown(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert len(list(tmp_path.glob(WRITTEN[target(command)]))) == 1


def test_every_option_that_is_named_exists():
    named = set(regex.findall(r"(?<![\w-])--[a-z][a-z-]+(?![\w_])", TEXT))
    shown = (
        run_logparse("export", "--help-all", cwd=ROOT).stdout + run_logparse("analyze", "--help-all", cwd=ROOT).stdout
    )
    assert [name for name in sorted(named) if name not in shown and name != "--logdir"] == []


def test_the_dashboard_has_every_metric(update_goldens):
    if update_goldens:
        DASHBOARD.write_text(text(), encoding="utf-8", newline="\n")
    assert DASHBOARD.read_text(encoding="utf-8") == text(), (
        "run pytest --update-goldens tests/docs/test_exports_docs.py"
    )


def test_the_dashboard_can_be_imported(tmp_path):
    made = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    jsonschema.validate(made, SCHEMA)
    panels = made["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [tuple(panel["gridPos"].values()) for panel in panels]
    assert len(set(places)) == len(places)
    assert all(x + width <= 24 for x, _, width, _ in places)
    pytest.importorskip("prometheus_client")
    run_shown(next(c for c in COMMANDS if target(c) == "openmetrics"), tmp_path)
    written = set(regex.findall(r"^logparse_\w+", (tmp_path / "metrics/run.prom").read_text(), regex.MULTILINE))
    asked = {regex.search(r"logparse_\w+", one["expr"])[0] for panel in panels for one in panel["targets"]}
    shown = {name for name in written if not name.startswith("logparse_run_")} - {"logparse_step"}
    assert {regex.sub("(?<=evaluation_loss)_.*", "", name) for name in shown} <= asked
    assert {name for name in asked if name.startswith("logparse_run_")} <= written
