"""The command line as a user runs it: what stands on stdout, how it ends, what its errors say, what it writes."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from helpers import (
    GOLDENS,
    PROGRAM,
    SETTINGS,
    arguments_dump,
    megatron_line,
    megatron_log,
    run_logparse,
    run_process,
)
from rich.cells import cell_len

from analysis import cli
from analysis.flops import all_formulas
from analysis.run.tables import STEP_COLUMNS, SUMMARY_COLUMNS
from logparse.formats import all_formats
from logparse.language import LANGUAGES
from logparse.schema import SCHEMA_VERSION

pytestmark = pytest.mark.usefixtures("analysed_once")

TORN = " iteration        9/     500 | consumed samples:          288 | elapsed time per\n"
STEPS_ONLY = "".join(megatron_line(step, ms=1000.0 + step) + "\n" for step in range(1, 5))
FORMATS_LOOKED_FOR = "".join(f"    {f.name}: a line with {f.marker[0]!r}\n" for f in all_formats())
FORMULAS, FORMAT_NAMES = ", ".join(all_formulas()), ", ".join(f.name for f in all_formats())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["a log.txt"], "to read a log: logparse analyze 'a log.txt'"),
        (["analyze", "a log.txt", "--hardware", "910b"], "use --hw to set the device, such as --hw 910b"),
    ],
)
def test_what_was_meant_is_told(tmp_path, arguments, hint):
    (tmp_path / "a log.txt").write_text(STEPS_ONLY)
    done = run_logparse(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{hint}\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Logs of every kind, good and bad; the commands run in this folder."""
    files: dict[str, str | bytes] = {
        "run.log": megatron_log(),
        "steps.log": STEPS_ONLY,
        "arguments.log": arguments_dump(SETTINGS),
        "words.log": "all is well\nand nothing happens\n",
        "torn.log": megatron_log() + TORN,
        "malformed.log": megatron_log() + megatron_line(7, pairs={"lm loss": "2.3O1"}) + "\n",
        "nan.log": megatron_log() + megatron_line(7, pairs={"lm loss": "nan", "grad norm": "inf"}) + "\n",
        "packed.log.gz": gzip.compress(megatron_log().encode()),
        "broken.gz": gzip.compress(b"text\n" * 100)[:20],
        "empty.log": "",
        "newline.log": "\n",
        "nul.log": b"\0" * 1000,
        "model.bin": bytes(range(1, 32)) * 100,
        "unknown-key.toml": "wrld_size = 8\n",
        "wrong-value.toml": 'world_size = "eight"\n',
        "wrong-choice.toml": 'dtype = "bf17"\n',
        "not-toml.toml": "world_size: 8\n",
        "good.toml": 'hw = "h100"\nseq_length = 2048\nnum_layers = 30\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "no-logs").mkdir()
    (tmp_path / "no-logs" / "model.bin").write_bytes(bytes(range(1, 32)) * 100)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("mine\n")
    return tmp_path


def refuse_constant(word: str) -> None:
    pytest.fail(f"{word} is not JSON")


def analyze_json(folder: Path, *arguments: str, **more) -> dict:
    done = run_logparse("analyze", *arguments, "--json", cwd=folder, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout, parse_constant=refuse_constant)


# Errors: the whole message is in tests/goldens/errors.

REFUSED = {
    "missing-file": (2, ["gone.log"]),
    "missing-glob": (2, ["gone*.log"]),
    "glob-that-finds-folders-only": (2, ["no-*"]),
    "folder-without-logs": (2, ["no-logs"]),
    "binary-file": (2, ["model.bin"]),
    "unknown-hw": (2, ["run.log", "--hw", "910b9"]),
    "unknown-model": (2, ["run.log", "--model", "lama2-7b"]),
    "unknown-formula": (2, ["run.log", "--formula", "palm2"]),
    "unknown-format": (2, ["run.log", "--format", "megatronn"]),
    "unknown-dtype": (2, ["run.log", "--dtype", "bf17"]),
    "unknown-recompute": (2, ["run.log", "--recompute", "some"]),
    "config-missing": (2, ["run.log", "--config", "gone.toml"]),
    "config-unknown-key": (2, ["run.log", "--config", "unknown-key.toml"]),
    "config-wrong-value": (2, ["run.log", "--config", "wrong-value.toml"]),
    "config-wrong-choice": (2, ["run.log", "--config", "wrong-choice.toml"]),
    "config-not-toml": (2, ["run.log", "--config", "not-toml.toml"]),
    "contradictory-flags": (
        2,
        [
            "steps.log",
            "--world-size",
            "16",
            "--data-parallel-size",
            "3",
            "--tensor-model-parallel-size",
            "2",
            "--pipeline-model-parallel-size",
            "4",
        ],
    ),
    "folder-not-empty": (2, ["run.log", "-o", "full"]),
    "folder-is-a-file": (2, ["run.log", "-o", "words.log"]),
    "no-step-line": (3, ["words.log"]),
    "strict-torn": (2, ["torn.log", "--strict"]),
    "strict-malformed": (2, ["malformed.log", "--strict"]),
}


# Cases whose message is not yet what its golden says.
@pytest.mark.parametrize("case", REFUSED)
def test_error_message(folder, case, update_goldens):
    code, arguments = REFUSED[case]
    done = run_logparse("analyze", *arguments, cwd=folder)
    # These lists grow; a golden that held one would change with every new format or formula.
    said = done.stderr.replace(FORMATS_LOOKED_FOR, "    <one line for each format>\n")
    said = said.replace(FORMULAS, "<every formula>").replace(FORMAT_NAMES, "<every format>")
    golden = GOLDENS / "errors" / f"{case}.txt"
    if update_goldens:
        golden.write_text(said)
    assert (done.returncode, done.stdout) == (code, "")
    assert said == golden.read_text()
    # These hold while goldens are rewritten too.
    assert said.startswith("logparse: ")
    assert "\n  try:   " in said
    assert str(folder) not in said


def test_every_golden_message_has_its_case():
    assert {f.name for f in (GOLDENS / "errors").iterdir()} == {f"{case}.txt" for case in REFUSED}


def test_refused_folder_keeps_its_files(folder):
    run_logparse("analyze", "run.log", "-o", "full", cwd=folder)
    assert [f.name for f in (folder / "full").iterdir()] == ["precious.txt"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["empty.log"], 3),
        (["newline.log"], 3),
        (["nul.log"], 3),
        (["broken.gz"], 3),
        (["/dev/null"], 3),
        (["arguments.log"], 3),
        (["-"], 3),
        (["no-*", "*.toml"], 2),
        (["."], 0),
        (["*.log"], 0),
        (["run.log", "run.log"], 0),
        (["torn.log"], 0),
        (["malformed.log"], 0),
        (["nan.log"], 0),
        (["steps.log"], 0),
        ([], 2),
        (["run.log", "--world-size", "0"], 2),
        (["run.log", "--world-size", "many"], 2),
        (["run.log", "--peak-tflops", "nan"], 2),
        (["run.log", "--no-such-flag"], 2),
        (["run.log", "--peak-tflops", "0"], 2),
        (["run.log", "--hw", "h100", "--peak-basis", "mattrix"], 2),
        (["a" * 300], 2),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_any_input_ends_with_its_exit_code_and_no_traceback(folder, arguments, code):
    done = run_logparse("analyze", *arguments, cwd=folder, stdin=b"")
    assert "Traceback" not in done.stderr
    assert done.returncode == code
    assert (done.stdout == "") == (code != 0)


@pytest.mark.parametrize("line", ["global batch size", "consumed samples"])
def test_nan_for_a_whole_number_is_no_traceback(folder, line):
    (folder / "odd.log").write_text(megatron_log() + megatron_line(7, pairs={line: "nan"}) + "\n")
    assert run_logparse("analyze", "odd.log", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    "setting", ["num_layers", "hidden_size", "num_attention_heads", "world_size", "seq_length", "padded_vocab_size"]
)
def test_zero_in_the_arguments_is_no_traceback(folder, setting):
    (folder / "odd.log").write_text(megatron_log(**{setting: 0}))
    analyze_json(folder, "odd.log", "--hw", "h100", "--formula", "megatron")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="file names are bytes on Linux only")
def test_file_name_that_is_not_utf8(folder):
    name = os.fsdecode(b"caf\xe9.log")
    (folder / name).write_text(megatron_log())
    done = run_logparse("analyze", name, "--json", cwd=folder)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


# JSON.


def test_json_is_one_document_and_nothing_else(folder):
    done = run_logparse("analyze", "nan.log", "--json", "--hw", "910b", "-o", "out", "--no-charts", cwd=folder)
    document = json.loads(done.stdout, parse_constant=refuse_constant)
    assert done.stdout.startswith("{")
    assert done.stdout.endswith("}\n")
    assert (document["schema_version"], len(document["runs"])) == (SCHEMA_VERSION, 1)
    assert done.stderr == ""


RUN_KEYS = ["name", "sources", "format", "framework", "coverage", "context", "device", "formula", "metrics", "notes"]
METRICS = [
    "elapsed_time_per_iteration_ms",
    "samples_per_second_per_device",
    "tokens_per_second_per_device",
    "tflops_per_second_per_device",
    "peak_utilization",
    "mfu",
    "hfu",
]


def test_json_keeps_its_names(folder):
    (run,) = analyze_json(folder, "run.log", "--hw", "h100")["runs"]
    assert set(RUN_KEYS) <= set(run)
    assert set(METRICS) <= set(run["metrics"])
    assert set(run["framework"]) >= {"name", "version", "evidence"}
    assert set(run["coverage"]) >= {"lines", "step_lines", "torn_lines", "malformed_values", "unread_labels"}
    names = {"name", "dtype", "peak_tflops_per_second", "basis", "source", "confidence", "range"}
    assert set(run["device"]) >= names
    assert set(run["formula"]) >= {"name", "recompute_factor", "flops_per_iteration"}
    for metric in run["metrics"].values():
        assert set(metric) >= {"unit", "median", "mean", "p10", "p90", "n"}


def test_json_says_what_was_read(folder):
    (run,) = analyze_json(folder, "torn.log")["runs"]
    assert (run["name"], run["sources"], run["format"]) == ("torn", ["torn.log"], "megatron")
    assert run["coverage"] == {
        "lines": len(SETTINGS) + 2 + 6 + 1,
        "step_lines": 6,
        "torn_lines": 1,
        "malformed_values": 0,
        "unread_labels": {},
    }
    line = 1 + len(SETTINGS)
    origin = {"kind": "log", "file": None, "line": line, "rule": None}
    assert run["context"]["world_size"] == {"value": 8, "origin": f"log line {line}", "from": origin}
    # Rows 2 to 6 count: 1002 to 1006 ms; 32 samples on 8 devices.
    assert run["metrics"]["elapsed_time_per_iteration_ms"]["median"] == 1004.0
    assert run["metrics"]["samples_per_second_per_device"]["median"] == pytest.approx(32 / 8 / 1.004)
    assert run["metrics"]["mfu"] is None
    assert run["device"] is None


def test_malformed_value_is_counted_and_named(folder):
    (run,) = analyze_json(folder, "malformed.log")["runs"]
    assert run["coverage"]["malformed_values"] == 1
    line = run["coverage"]["lines"]
    text = f"malformed.log, line {line}: 'lm loss' is '2.3O1', which is not a valid number"
    assert [note["level"] for note in run["notes"] if note["text"] == text] == ["warning"]


@pytest.mark.parametrize("arguments", [["-"], ["packed.log.gz"]], ids=["standard input", "gzip"])
def test_same_numbers_however_the_log_comes(folder, arguments):
    (plain,) = analyze_json(folder, "run.log")["runs"]
    (other,) = analyze_json(folder, *arguments, stdin=gzip.compress(megatron_log().encode()))["runs"]
    assert other["metrics"] == plain["metrics"]


# Several files.


def test_several_files_are_one_run(folder):
    (run,) = analyze_json(folder, "arguments.log", "steps.log")["runs"]
    assert run["sources"] == ["arguments.log", "steps.log"]
    assert run["context"]["world_size"]["origin"] == f"log line {1 + len(SETTINGS)} of arguments.log"
    assert run["coverage"]["step_lines"] == 4
    assert run["metrics"]["tokens_per_second_per_device"]["n"] == 3


def test_each_file_is_a_run_of_its_own(folder):
    runs = analyze_json(folder, "--each", "run.log", "steps.log")["runs"]
    assert [(r["name"], r["sources"], r["coverage"]["step_lines"]) for r in runs] == [
        ("run", ["run.log"], 6),
        ("steps", ["steps.log"], 4),
    ]


def test_each_run_has_its_own_charts(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "train.log").write_text(megatron_log())
    assert run_logparse("analyze", "--each", "a/train.log", "b/train.log", "-o", "out", cwd=folder).returncode == 0
    assert len(list((folder / "out" / "charts").iterdir())) == 2
    assert pl.read_parquet(folder / "out" / "steps.parquet")["run"].n_unique() == 2


def test_run_of_the_current_folder_has_a_name(folder):
    assert analyze_json(folder, ".")["runs"][0]["name"] != ""


def test_flags_beat_the_config_file_which_beats_the_log(folder):
    (run,) = analyze_json(folder, "run.log", "--config", "good.toml", "--num-layers", "31")["runs"]
    facts = run["context"]
    assert {name: (facts[name]["value"], facts[name]["origin"]) for name in ("num_layers", "seq_length")} == {
        "num_layers": (31, "--num-layers"),
        "seq_length": (2048, "config file good.toml"),
    }
    assert facts["hidden_size"]["value"] == 4096
    assert facts["hidden_size"]["origin"].startswith("log line ")
    assert "H100" in run["device"]["name"].upper()
    assert any("overrides" in note["text"] and "seq_length" in note["text"] for note in run["notes"])


def test_the_planned_utilisation_is_set_beside_the_run(folder):
    asked = ("run.log", "--hw", "h100", "--utilisation", "0.45")
    (run,) = analyze_json(folder, *asked)["runs"]
    planned = {row["name"]: row["planned"] for row in run["planned"]["rows"]}
    assert planned["utilisation"] == 0.45
    sentences = " ".join(run["planned"]["sentences"])
    assert "45.0 % planned" in sentences
    assert "at 45.0 % of the peak" in sentences


# Files.


def test_out_folder_holds_the_schema(folder):
    done = run_logparse("analyze", "run.log", "-o", "out", "--no-charts", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == "wrote out/\n"
    for name, columns in (("steps", STEP_COLUMNS), ("summary", SUMMARY_COLUMNS)):
        path = folder / "out" / f"{name}.parquet"
        assert pl.read_parquet_schema(path) == {c.name: c.dtype for c in columns}
        schema = pq.read_schema(path)
        assert schema.names == [c.name for c in columns]
        assert schema.metadata[b"logparse.schema_version"] == str(SCHEMA_VERSION).encode()


def test_out_folder_holds_the_rows_in_order(folder):
    run_logparse("analyze", "run.log", "-o", "out", "--no-charts", cwd=folder)
    steps = pl.read_parquet(folder / "out" / "steps.parquet")
    assert steps["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert steps["line_number"].to_list() == [len(SETTINGS) + 2 + step for step in range(1, 7)]
    assert steps["counted"].to_list() == [False, True, True, True, True, True]
    assert steps["run"].unique().to_list() == ["run"]


def test_force_overwrites(folder):
    for log in ("run.log", "steps.log"):
        done = run_logparse("analyze", log, "-o", "full", "--no-charts", "--force", cwd=folder)
        assert done.returncode == 0
    assert pl.read_parquet(folder / "full" / "steps.parquet").height == 4
    assert (folder / "full" / "precious.txt").read_text() == "mine\n"


def test_killed_while_writing_leaves_the_old_file_whole(folder):
    """The process dies with the file written and not yet renamed."""
    run_logparse("analyze", "run.log", "-o", "out", "--no-charts", cwd=folder)
    before = (folder / "out" / "steps.parquet").read_bytes()
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.argv = 'logparse analyze steps.log -o out --no-charts --force'.split()\n"
        "from logparse.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (folder / "out" / "steps.parquet").read_bytes() == before
    assert run_logparse("analyze", "steps.log", "-o", "out", "--no-charts", "--force", cwd=folder).returncode == 0


# The process.


@pytest.mark.parametrize("command", [[PROGRAM], [sys.executable, "-m", "logparse"]], ids=["script", "module"])
def test_version(tmp_path, command):
    done = run_process("--version", cwd=tmp_path, command=command)
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "logparse", "")


def test_table_is_for_people(folder):
    brief = (
        "llama-7b or llama2-7b on 8 x H100 SXM5",
        "step time      1.00 s",
        "tokens/s/p",
        "MFU  ",
        "too few for goodput",
    )
    whole = ("step time, ms", "1,004.0", "6 step lines for 6 steps, 5 counted", "log line 1")
    for flags, texts in (((), brief), (("-v",), (*brief, *whole))):
        done = run_logparse("analyze", "run.log", "--hw", "h100", *flags, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        for text in texts:
            assert text in done.stdout


@pytest.mark.parametrize("shape", ["package", "module"])
def test_another_package_called_analysis_is_told(folder, shape):
    """Usual beside Megatron, where PYTHONPATH holds folders of that name."""
    stranger = folder / "stranger" / ("analysis/__init__.py" if shape == "package" else "analysis.py")
    stranger.parent.mkdir(parents=True)
    stranger.write_text("raise RuntimeError('imported')\n")
    done = run_process("analyze", "run.log", cwd=folder, PYTHONPATH=str(folder / "stranger"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "another package called 'analysis' is imported in place of logparse's" in done.stderr
    assert "try:   unset PYTHONPATH" in done.stderr


@pytest.mark.parametrize(
    "shape",
    [
        "analysis/__init__.py",
        "analysis.py",
    ],
)
def test_place_of_the_other_package_is_told(folder, shape):
    stranger = folder / "stranger" / shape
    stranger.parent.mkdir(parents=True)
    stranger.write_text("")
    done = run_process("--version", cwd=folder, PYTHONPATH=str(folder / "stranger"))
    (where,) = [line.partition("where: ")[2] for line in done.stderr.splitlines() if "where: " in line]
    assert Path(where).is_relative_to(folder / "stranger")


def test_folder_called_analysis_without_a_package_is_harmless(folder):
    (folder / "stranger" / "analysis").mkdir(parents=True)
    assert run_process("--version", cwd=folder, PYTHONPATH=str(folder / "stranger")).returncode == 0


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
def test_a_terminal_of_no_size_shows_the_result(folder, name):
    plain = run_logparse("analyze", "run.log", cwd=folder, COLUMNS="80")
    done = run_logparse("analyze", "run.log", cwd=folder, **{"COLUMNS": "80", name: "0"})
    assert done.stdout == plain.stdout != ""


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "100000"])
def test_a_number_of_threads_that_is_none_is_named(folder, value):
    done = run_process("analyze", "run.log", cwd=folder, POLARS_MAX_THREADS=value)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("  try:   unset POLARS_MAX_THREADS, or set it to the number of cores\n")
    assert f"logparse: POLARS_MAX_THREADS is {value!r}, which is no number of threads" in done.stderr


HEAVY = {"mcp", "pydantic", "altair", "jinja2", "numpy", "pandas", "pyarrow", "ray", "rich", "scipy", "vl_convert"}


def loaded_by(*commands: list[str], **environment: str) -> list[set[str]]:
    """Every module that the program has imported when each of ``commands`` ends, one after the other."""
    program = (
        "import sys\n"
        "from logparse.__main__ import main\n"
        f"for arguments in {commands!r}:\n"
        "    sys.argv = ['logparse', *arguments]\n"
        "    try:\n        main()\n"
        "    except SystemExit:\n        print('loaded', *sys.modules, file=sys.stderr)\n"
    )
    given = os.environ | environment
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=True)
    loaded = [set(line.split()) for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert ["analysis.cli" in modules for modules in loaded] == [True] * len(commands)
    return loaded


def test_help_of_a_command_imports_nothing_heavy():
    loaded = loaded_by(*([command, "--help"] for command in cli.COMMANDS))
    assert {command: modules & HEAVY for command, modules in zip(cli.COMMANDS, loaded, strict=True)} == {
        command: set() for command in cli.COMMANDS
    }
    assert all(f"analysis.commands.{command.replace('-', '_')}" in loaded[-1] for command in cli.COMMANDS)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]], ids=" ".join)
def test_a_command_is_imported_when_it_is_asked_for(arguments):
    (loaded,) = loaded_by(arguments)
    assert not loaded & (HEAVY | {"polars", "regex", "importlib.metadata", "tomllib"})
    assert {name for name in loaded if name.startswith(("analysis.", "logparse."))} == {
        "analysis.cli",
        "analysis.commands",
        "analysis.commands._completion",
        "analysis.commands._help",
        "analysis.commands._help_pages",
        "analysis.commands._values",
        "analysis.project",
        "analysis.project.choose_language",
        "logparse.__main__",
        "logparse.errors",
        "logparse.language",
        "logparse.memory",
        "logparse.shadowed",
    }


def test_a_table_imports_what_it_needs(folder):
    (loaded,) = loaded_by(["analyze", str(folder / "run.log"), "--hw", "910b"])
    unneeded = HEAVY - {"numpy", "rich"} | {"pydantic", "analysis.charts", "analysis.estimate.job", "analysis.report"}
    unneeded |= {"analysis.history", "analysis.nightly.policy", "analysis.stats.prediction"}
    assert {"polars", "rich"} <= loaded
    assert not loaded & unneeded


def test_diagnose_imports_nothing_that_computes(folder):
    (loaded,) = loaded_by(["diagnose", str(folder / "run.log")])
    rooms = {f"analysis.{room}" for room in ("estimate", "flops", "hardware.devices", "identify", "model", "published")}
    assert not loaded & (HEAVY - {"rich"} | rooms | {"analysis.run.run", "analysis.run.build"})


def test_help_in_chinese_imports_no_polars():
    (loaded,) = loaded_by(["--help"], LANG="zh_CN.UTF-8")
    assert not loaded & {"polars", "numpy", "regex", "analysis.flops"}


def test_reader_that_closes_the_pipe_is_no_failure(folder):
    command = [PROGRAM, "analyze", "run.log"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (0, "")
    as_json = run_logparse("analyze", "run.log", "--json", cwd=folder, unread=True)
    assert (as_json.returncode, as_json.stderr) == (0, "")


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """Runs the program with a command that raises the error it is given."""

    def run(error):
        def command():
            raise error

        monkeypatch.setattr(cli, "build_app", lambda: lambda **_: cli._to_the_end(command)())
        return run_logparse(cwd=tmp_path)

    return run


def test_the_runner_of_the_tests_hides_no_defect(failing):
    with pytest.raises(ZeroDivisionError):
        failing(ZeroDivisionError("of nothing"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("of\nnothing"), "internal error: ZeroDivisionError: of nothing\n  where: cli.py:"),
        (pl.exceptions.PanicException("index out of bounds"), "internal error: PanicException: index out of bounds"),
        (RecursionError("too deep"), "internal error: RecursionError: too deep"),
        (MemoryError(), "out of memory\n  try:   free some memory"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("debug", ["", "1"])
def test_a_defect_is_no_regression(monkeypatch, capsys, error, said, debug):
    """Python's own exit code for a traceback is 1, by which the gate stops a release."""

    def command():
        raise error

    monkeypatch.setattr(cli, "build_app", lambda: lambda **_: cli._to_the_end(command)())
    monkeypatch.setenv("LOGPARSE_DEBUG", debug)
    assert cli._exit_code() == 2
    err = capsys.readouterr().err
    assert f"logparse: {said}" in err
    assert "\n  try:   " in err
    assert ("Traceback" in err) == bool(debug)


def test_a_file_that_cannot_be_used_is_named(failing):
    done = failing(PermissionError(13, "Permission denied", "runs/summary"))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "cannot use runs/summary: Permission denied" in done.stderr


def test_a_record_without_its_release_shows_a_whole_command(tmp_path):
    refused = run_logparse("record", "run.log", cwd=tmp_path)
    assert refused.returncode == 2
    lines = refused.stderr.splitlines()
    assert lines[-2:] == [
        "Error: Missing option '--release'.",
        "  try:   logparse record LOG --release NAME --history DIR",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_is_wrapped_on_a_terminal_and_whole_for_a_program(language, tmp_path):
    (tmp_path / "run.log").write_text("".join(f"{{'loss': 1.{n}, 'epoch': 0.{n}}}\n" for n in range(1, 6)))
    # Without -q a busy machine would show the bar of a slow reading too.
    arguments = ["analyze", "run.log", "-q", "--lang", language]
    piped = run_logparse(*arguments, cwd=tmp_path).stderr
    main, other = pty.openpty()
    command = [sys.executable, "-m", "logparse", *arguments]
    code = subprocess.run(command, cwd=tmp_path, stderr=other, stdout=subprocess.PIPE, check=False).returncode
    os.close(other)
    shown = os.read(main, 10_000).decode()
    os.close(main)
    assert code == 3
    assert max(map(cell_len, piped.splitlines())) > 80
    assert max(map(cell_len, shown.splitlines())) <= 80
    assert "".join(shown.split()) == "".join(piped.split())
