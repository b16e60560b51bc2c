"""The JSON Schemas of docs/schema describe what is printed, key by key."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import regex
from fixture_runs import FIXTURES, FOLDERS, name_of, run_of_fixture
from helpers import ROOT, run_logparse, run_shown
from json_documents import DOCUMENTS, schema_of
from json_schemas import KEYS, used
from releases import fill

from analysis.cli import COMMANDS
from analysis.present.document_parts import value_at
from analysis.present.views.analyze_json import document
from analysis.present.views.compact import FIGURES, causes_of_null, compact_runs

pytestmark = pytest.mark.usefixtures("analysed_once")

FOLDER = ROOT / "docs" / "schema"
PAGE = ROOT / "docs" / "json.md"
LLAMA = str(FIXTURES / "megatron/core-v0.12-llama2-7b/run.log")
OLMO = str(FIXTURES / "olmo/1b-8gpu/run.log")
MOST_WORDS = 25
# Bytes of a short document.
MOST_BYTES = 6000


@pytest.fixture(scope="module")
def schemas():
    """A validator for each document, of the files as they are."""
    texts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    return {name: jsonschema.Draft202012Validator(schema) for name, schema in texts.items()}


def errors(validator: jsonschema.Draft202012Validator, value: Any) -> list[str]:
    """Place and message of each error, those of a choice too."""
    found = list(validator.iter_errors(value))
    found += [one for error in found for one in error.context or ()]
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in found]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_what_the_code_says(name, update_goldens):
    made = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(made)
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    path = FOLDER / f"{name}.json"
    if update_goldens:
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text, "run pytest --update-goldens tests/docs/test_schemas.py"


def test_no_schema_is_left_over():
    assert {path.stem for path in FOLDER.iterdir()} == set(DOCUMENTS)


def test_every_key_that_is_described_exists():
    for name in DOCUMENTS:
        schema_of(name)
    assert [(of, key) for of, table in KEYS.items() for key in table if (of, key) not in used] == []


def test_descriptions_are_short_sentences():
    texts = [text for table in KEYS.values() for text in table.values()]
    assert [text for text in texts if len(text.split()) > MOST_WORDS or not text.endswith(".")] == []


def with_json() -> set[str]:
    """Every command that prints JSON."""
    found = set()
    for name in COMMANDS:
        if "--json" in run_logparse(name, "--help-all", cwd=ROOT).stdout:
            found.add(name)
        listed = run_logparse(name, "--help", cwd=ROOT).stdout.partition("\nCommands:\n")[2]
        for part in regex.findall(r"^  ([a-z]\S*)", listed, regex.MULTILINE):
            text = run_logparse(name, part, "--help-all", cwd=ROOT).stdout
            if "--json" in text or "as JSON" in text:
                found.add(f"{name} {part}")
    return found


def test_every_command_with_json_has_a_schema():
    calls = [call for _, commands, _ in DOCUMENTS.values() for call in commands.split(", ")]
    named = {regex.fullmatch(r"logparse (.+?)(?: --(?:jsonl?|compact))?", call)[1] for call in calls}
    # `logparse formats` is short for `logparse formats show`.
    assert {"formats" if name == "formats show" else name for name in with_json()} == named


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_fixture_is_valid(folder: Path, schemas):
    whole = json.loads(json.dumps(document([run_of_fixture(folder)], 2.0)))
    assert errors(schemas["analyze"], whole) == []
    short = compact_runs(whole)
    assert errors(schemas["analyze-compact"], short) == []
    assert len(json.dumps(short, separators=(",", ":"))) < MOST_BYTES
    assert added(short, whole) == ["runs.omitted"]
    assert unexplained(short["runs"][0]) == []


def added(short: Any, whole: Any, above: str = "") -> list[str]:
    """The paths of ``short`` where ``whole`` has not the same value. Items of a list may be left out."""
    if isinstance(short, dict) and isinstance(whole, dict):
        return [
            path
            for name, value in short.items()
            for path in ([above + name] if name not in whole else added(value, whole[name], f"{above}{name}."))
        ]
    if isinstance(short, list) and isinstance(whole, list):
        left = iter(whole)
        wrong = [one for one in short if all(added(one, item, above) not in ([], ["runs.omitted"]) for item in left)]
        return ["runs.omitted"] if above == "runs." and not wrong else [above for _ in wrong]
    return [] if short == whole and type(short) is type(whole) else [above]


def unexplained(run: dict[str, Any]) -> list[str]:
    """The figures of a short run that are null without a note that says why."""
    codes = {note["code"] for note in run["notes"]}
    return [path for path in FIGURES if value_at(run, path) is None and codes.isdisjoint(causes_of_null(path))]


WIDE = ("--candidate", "release in slow|wide")
# Arguments of a command, and the schema of what it prints.
PRINTED = {
    "analyze": [
        ("analyze", LLAMA, "--hw", "910b", "--require", "mfu>=0.45", "--json"),
        ("analyze", "--each", *(f"{i}-0.log" for i in ("good", "slow")), "--json"),
    ],
    "analyze-compact": [("analyze", "--each", *(f"{i}-0.log" for i in ("good", "slow")), "--compact")],
    "compare-compact": [
        ("compare", "--history", "h", "release=good", "release=slow", "release=single", "--compact"),
        ("compare", "good-0.log", "slow-0.log", "--loss", "--compact"),
    ],
    "diagnose-compact": [("diagnose", LLAMA, "--compact"), ("diagnose", LLAMA, OLMO, "--compact")],
    "compare": [
        ("compare", "--history", "h", "release=good", "release=slow", "--json"),
        ("compare", "--history", "h", "release=good", "release=long", "--json"),
        ("compare", "--history", "h", "release=good", "release=slow", "release=single", "--json"),
        ("compare", "good-0.log", "slow-0.log", "--json"),
        ("compare", "good-0.log", "slow-0.log", "--loss", "--require", "loss_mre<=0.02", "--json"),
        ("compare", "--history", "h", "release=good", "release=slow", "release=long", "--loss", "--json"),
    ],
    "gate": [
        ("gate", "--history", "h", "--baseline", "release=good", "--candidate", "release=slow", "--json"),
        ("gate", "--history", "h", "--json"),
        ("gate", "--history", "h", "--backtest", "2026-01-01..2026-03-01", "--json"),
        (
            "gate",
            "--history",
            "h",
            "--baseline",
            "release in good|long",
            "--candidate",
            "release in slow|wide",
            "--json",
        ),
    ],
    "history-regressions": [("history", "regressions", "--history", "h", "--json")],
    "trend": [("trend", "--history", "h", "--json"), ("trend", "--history", "h", "--by", "day", "--json")],
    "bisect": [("bisect", "--history", "h", "release=good", "release=slow", "--json")],
    "record": [("record", LLAMA, "--release", "r2", "--history", "other", "--json")],
    "history-list": [("history", "list", "--history", "h", "--json")],
    "estimate": [
        ("estimate", "--model", "llama2-7b", "--hw", "910b3", "--world-size", "8", "--seq-length", "4096", "--json"),
        ("estimate", "--from", LLAMA, "--json"),
        ("estimate", "--model", "llama2-70b", "--hw", "910b3", "--devices", "64", "--json"),
        ("estimate", "--model", "deepseek-v3", "--json"),
    ],
    "formulas": [("formulas", LLAMA, "--json"), ("formulas", "good-0.log", "--json")],
    "formats": [("formats", "--json"), ("formats", "megatron", "--json")],
    "formats-test": [("formats", "test", "megatron", LLAMA, "--json"), ("formats", "test", "olmo", LLAMA, "--json")],
    "hardware": [("hardware", "--json")],
    "models": [("models", "--json")],
    "baselines": [("baselines", "--json")],
    "config": [("config", "--json")],
    "watch": [("watch", LLAMA, "--once", "--jsonl")],
    "self-check": [("self-check", "--json")],
    "diagnose": [("diagnose", LLAMA, "--json"), ("diagnose", LLAMA, OLMO, "--json")],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    overlap = {"overlap_grad_reduce": True}
    slow = {"overlap_grad_reduce": False}
    releases = {
        "good": (1000.0, 5, overlap),
        "slow": (1040.0, 5, slow),
        "single": (1000.0, 1, overlap),
        "long": (1000.0, 3, {"seq_length": 8192}),
        "wide": (1000.0, 3, {"seq_length": 8192}),
    }
    fill(folder, releases)
    return folder


def printed(arguments: tuple[str, ...], place: Path) -> Any:
    done = run_logparse(*arguments, cwd=place)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


CALLS = [(name, call) for name, calls in PRINTED.items() for call in calls]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=lambda part: part if isinstance(part, str) else None)
def test_a_document_is_valid(name, call, place, schemas):
    assert errors(schemas[name], printed(call, place)) == []


def test_a_recorded_run_is_valid(place, schemas):
    run_id = printed(("history", "list", "release=single", "--history", "h", "--json"), place)["runs"][0]["run_id"]
    for event in (("annotate", run_id, "note"), ("label", run_id, "node=7"), ("accept", run_id, "--reason", "known")):
        done = run_logparse("history", *event, "--history", "h", cwd=place)
        assert done.returncode == 0, done.stderr
    assert errors(schemas["history-show"], printed(("history", "show", run_id, "--history", "h"), place)) == []
    assert errors(schemas["history-list"], printed(("history", "list", "--history", "h", "--json"), place)) == []


def test_every_document_has_a_call():
    assert {*PRINTED, "history-show"} == set(DOCUMENTS)


def renamed(value: Any) -> list[Any]:
    """Copies of a document, each with one key renamed: the keys of a run and of the objects beneath it."""
    copies = []
    for name in value["runs"][0]:
        copies.append(copy.deepcopy(value))
        copies[-1]["runs"][0]["renamed"] = copies[-1]["runs"][0].pop(name)
    for name in ("framework", "coverage", "device", "formula", "rates", "metrics", "planned", "published"):
        first = next(iter(value["runs"][0][name]))
        copies.append(copy.deepcopy(value))
        copies[-1]["runs"][0][name]["renamed"] = copies[-1]["runs"][0][name].pop(first)
    return copies


def test_a_renamed_key_is_an_error(place, schemas):
    value = printed(PRINTED["analyze"][0], place)
    copies = renamed(value)
    assert len(copies) > 30
    assert all(errors(schemas["analyze"], one) for one in copies)


# The page.

TEXT = PAGE.read_text(encoding="utf-8")
PATHS = [
    path for row in regex.findall(r"^\| (`.+?) \|", TEXT, regex.MULTILINE) for path in regex.findall(r"`([\w.]+)`", row)
]


def parts(schema: dict[str, Any], whole: dict[str, Any]) -> list[dict[str, Any]]:
    """``schema`` without references, lists and choices: the objects it may be."""
    if "$ref" in schema:
        return parts(whole["$defs"][schema["$ref"].rsplit("/", 1)[1]], whole)
    if schema.get("items"):
        return parts(schema["items"], whole)
    choices = [one for key in ("anyOf", "allOf") for one in schema.get(key, ())]
    return [schema, *(part for choice in choices for part in parts(choice, whole))]


def known(path: str, whole: dict[str, Any]) -> bool:
    """Whether a document has a key at ``path``."""
    schemas = [whole]
    for name in path.split("."):
        found = [part for schema in schemas for part in parts(schema, whole)]
        schemas = [part["properties"][name] for part in found if name in part.get("properties", {})]
    return bool(schemas)


@pytest.mark.parametrize("path", PATHS)
def test_a_name_of_the_page_is_in_the_schema(path):
    assert known(path, schema_of("analyze"))


def test_a_wrong_name_is_not_in_the_schema():
    assert len(PATHS) > 50
    assert not known("runs.rates.steady.speed", schema_of("analyze"))
    assert not known("runs.mfu", schema_of("analyze"))


def test_the_page_lists_every_schema(update_goldens):
    rows = (
        f"- [{name}.json](schema/{name}.json): " + ", ".join(f"`{call}`" for call in command.split(", "))
        for name, (_, command, _) in DOCUMENTS.items()
    )
    made = "\n".join(rows)
    page = PAGE.read_text(encoding="utf-8")
    marks = regex.compile(r"(<!-- schemas -->\n).*?(<!-- end of schemas -->)", regex.DOTALL)
    if update_goldens:
        PAGE.write_text(marks.sub(lambda found: f"{found[1]}{made}\n{found[2]}", page), encoding="utf-8")
    found = marks.search(PAGE.read_text(encoding="utf-8"))
    assert found
    assert found[0].split("\n", 1)[1].rsplit("\n", 1)[0] == made


def test_the_commands_of_the_page_print_json(tmp_path, schemas):
    whole, short, chosen = (
        run_shown(command, tmp_path).stdout for command in regex.findall(r"```sh\n(.*?)\n```", TEXT)
    )
    assert errors(schemas["analyze"], json.loads(whole)) == []
    assert errors(schemas["analyze-compact"], json.loads(short)) == []
    assert regex.findall(r"```json\n(.*?)```", TEXT, regex.DOTALL) == [chosen]


def test_the_example_of_the_page_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    (code,) = regex.findall(r"```python\n(.*?)```", TEXT, regex.DOTALL)
    (shown,) = regex.findall(r"```text\n(.*?)```", TEXT, regex.DOTALL)

    def run(command: list[str], **how: Any) -> Any:
        assert how == {"capture_output": True, "check": True}
        return run_logparse(*command[1:], cwd=ROOT)

    monkeypatch.setattr("subprocess.run", run)
    exec(code, {})
    assert capsys.readouterr().out == shown
