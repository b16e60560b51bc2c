"""The server for agents: its tools over standard input and output, and what it may read."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from helpers import PROGRAM, ROOT, megatron_log, run_logparse
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from analysis.commands._readable_root import ReadableRoot
from logparse.errors import InputError, UsageError

SECRET = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "analyze": ("analyze", {"logs": ["runs/a.log"], "hw": "h100"}),
    "fields": ("analyze", {"logs": ["runs/a.log"], "fields": "mfu,world_size", "settings": {"world_size": 16}}),
    "each": ("analyze", {"logs": ["runs"], "each": True}),
    "diagnose": ("diagnose", {"logs": ["failed.log"]}),
    "compare": ("compare", {"baseline": ["runs/a.log"], "candidate": ["runs/b.log"]}),
    "formats": ("formats", {"name": "megatron"}),
    "outside": ("analyze", {"logs": ["../outside.log"]}),
    "several": ("analyze", {"logs": ["runs/a.log", "other.log"]}),
    "unknown": ("analyze", {"logs": ["runs/a.log"], "settings": {"config": "logparse.toml"}}),
}


def make_root(folder: Path) -> Path:
    """A folder of logs next to one that must not be read."""
    root = folder / "root"
    (root / "runs").mkdir(parents=True)
    (folder / "outside.log").write_text(megatron_log())
    for name, loss in (("a", "2.345678E+00"), ("b", "2.345679E+00")):
        (root / "runs" / f"{name}.log").write_text(megatron_log().replace("2.345678E+00", loss))
    (root / "other.log").write_text(megatron_log(num_layers=24))
    (root / "runs" / "notes.txt").write_text("no step line\n")
    (root / "failed.log").write_text(f"RuntimeError: no login with token {SECRET}\n")
    (root / "link.log").symlink_to("../outside.log")
    (root / "inside.log").symlink_to("runs/a.log")
    (root / "linked").mkdir()
    (root / "linked" / "more").symlink_to(folder)
    os.mkfifo(root / "pipe")
    return root


async def _session(root: Path) -> tuple[dict[str, Any], dict[str, tuple[bool, str]]]:
    server = StdioServerParameters(command=PROGRAM, args=["mcp", "--root", str(root)])
    async with Client(stdio_client(server)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        results = {name: await client.call_tool(*call) for name, call in CALLS.items()}
    return tools, {name: (result.is_error, result.content[0].text) for name, result in results.items()}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """The tools that a client sees, and whether and what each call answered with an error."""
    return anyio.run(_session, make_root(tmp_path_factory.mktemp("mcp")))


def test_the_tools_only_read(session):
    tools, _ = session
    assert set(tools) == {"analyze", "diagnose", "compare", "formats"}
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert all("Args:\n    " in tool.description for tool in tools.values())


def test_answers_are_short_json_with_a_version(session):
    _, answers = session
    documents = {name: json.loads(text) for name, (wrong, text) in answers.items() if not wrong}
    assert set(documents) == set(CALLS) - {"outside", "several", "unknown"}
    for name, document in documents.items():
        assert document["schema_version"] == 2
        assert len(answers[name][1]) < 6000
    for name in ("analyze", "diagnose", "compare"):
        schema = json.loads((ROOT / "docs/schema" / f"{name}-compact.json").read_text())
        jsonschema.validate(documents[name], schema)
    assert documents["analyze"]["runs"][0]["metrics"]["mfu"]["median"] > 0
    (run,) = documents["fields"]["runs"]
    assert (run["context"]["world_size"]["value"], run["metrics"]["mfu"]) == (16, None)
    assert "device_unknown" in [note["code"] for note in run["notes"]]
    assert [run["name"] for run in documents["each"]["runs"]] == ["a", "b"]
    assert documents["compare"]["baseline"]["asked"] == "runs/a.log"


def test_secrets_are_masked(session):
    answer = json.loads(session[1]["diagnose"][1])
    assert answer["ending"]["text"].startswith("RuntimeError: no login with token ***")
    assert SECRET not in str(session)


def test_what_cannot_be_answered_is_said(session):
    _, answers = session
    assert answers["outside"][0]
    assert "../outside.log is outside the folder that may be read" in answers["outside"][1]
    assert answers["several"][0]
    assert "analyze each run by itself: each=true" in answers["several"][1]
    assert answers["unknown"][0]
    assert "unknown setting 'config'" in answers["unknown"][1]
    (remark,) = json.loads(answers["each"][1])["remarks"]
    assert "no step line found" in remark


@pytest.mark.parametrize(
    "name",
    ["../outside.log", "/etc/hostname", "runs/../../outside.log", "link.log", "linked", "linked/more/outside.log"],
)
def test_nothing_outside_the_root_is_read(tmp_path, name):
    with pytest.raises(UsageError, match="outside the folder that may be read"):
        ReadableRoot.of(make_root(tmp_path)).checked([name])


@pytest.mark.parametrize("name", ["-", "https://127.0.0.1/run.log", "a\0b", "pipe"])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="is not a file"):
        ReadableRoot.of(make_root(tmp_path)).checked([name])


def test_what_is_below_the_root_is_read(tmp_path):
    root = ReadableRoot.of(make_root(tmp_path))
    assert root.checked(["inside.log", str(tmp_path / "root/runs"), "runs/b.log"]) == [
        "runs/a.log",
        "runs",
        "runs/b.log",
    ]
    for name in ("missing.log", "x" * 300):
        with pytest.raises(InputError, match="cannot read"):
            root.checked([name])


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    done = run_logparse("mcp", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'logparse[mcp]'" in done.stderr


def test_a_root_is_a_folder(tmp_path):
    done = run_logparse("mcp", "--root", "missing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "missing is not a folder" in done.stderr
