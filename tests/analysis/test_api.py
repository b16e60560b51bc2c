"""The command's work from Python, as a notebook would use it."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from helpers import ROOT, megatron_log, run_logparse
from releases import write_run

import logparse
from analysis.charts import CHART_NAMES
from analysis.charts.of_run import FILES
from analysis.present.words import say
from analysis.project.argument_names import OPTION_TYPES, with_arguments
from logparse.errors import InputError, InsufficientDataError, UsageError
from logparse.findings import flag
from logparse.language import LANGUAGES, use_language

pytestmark = pytest.mark.usefixtures("analysed_once")

LOG = ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log"
OTHER = ROOT / "fixtures/megatron/ascendspeed-llama2-7b/run.log"
# By the attribute: the key of the steady rate in the JSON document, and what the value is multiplied with.
FIGURES = {
    "step_time_ms": ("step_time_ms", 1),
    "step_time_seconds": ("step_time_ms", 0.001),
    "samples_per_second": ("samples_per_second_per_device", 1),
    "tokens_per_second": ("tokens_per_second_per_device", 1),
    "tflops": ("tflops_per_second_per_device", 1),
    "peak_utilization": ("peak_utilization", 1),
    "mfu": ("mfu", 1),
    "hfu": ("hfu", 1),
}


@pytest.fixture(scope="module")
def run():
    return logparse.analyze(LOG, hw="910b3")


def printed(*arguments, cwd):
    return json.loads(run_logparse(*map(str, arguments), "--json", cwd=cwd).stdout)


def as_json(value):
    return json.loads(json.dumps(value))


def test_a_call_gives_what_the_command_gives(tmp_path, run):
    command = printed("analyze", LOG, "--hw", "910b3", cwd=tmp_path)["runs"][0]
    assert as_json(run.to_dict()) == command
    assert [say(note) for note in run.notes] == [note["text"] for note in command["notes"]]


@pytest.mark.parametrize("log", [LOG, OTHER])
def test_a_figure_is_that_of_the_document(log):
    run = logparse.analyze(log, hw="910b3")
    document = run.to_dict()
    for name, (key, factor) in FIGURES.items():
        value = document["rates"]["steady"][key]
        assert getattr(run, name) == (value if value is None else pytest.approx(value * factor, rel=1e-12)), name
        assert type(run).__mro__[1].__dict__[name].__doc__
    assert run.goodput == document["goodput"]
    assert run.time_to_train_seconds == document["time_to_train_seconds"]


def test_who_and_what_is_there_by_name(run):
    document = run.to_dict()
    assert (run.model, run.device) == ("llama2-7b", document["device"]["name"])
    assert run.ending.state == document["ending"]["state"]
    assert (run.loss.last, run.loss.steps) == (run.steps["loss"][-1], 60)
    texts = [note["text"] for note in document["notes"] if note["level"] == "warning"]
    assert run.warnings == texts


def test_public_names_are_listed():
    assert dir(logparse) == sorted((*logparse.__all__, "errors", "schema"))
    assert all(callable(getattr(logparse, name)) for name in logparse.__all__ if name != "__version__")


def test_diagnose_gives_what_the_command_gives(tmp_path):
    ending = logparse.diagnose(LOG)
    assert as_json(ending.to_dict()) == printed("diagnose", LOG, cwd=tmp_path)["ending"]
    assert "<" in ending._repr_html_()
    with pytest.raises(UsageError, match="no log is given"):
        logparse.diagnose()


JOB = {"model": "llama2-13b", "hw": "a100-80g", "devices": 8, "seq_length": 4096, "global_batch_size": 64}


def test_estimate_gives_what_the_command_gives(tmp_path):
    flags = (text for name, value in JOB.items() for text in (f"--{name.replace('_', '-')}", value))
    estimate = logparse.estimate(**JOB)
    assert as_json(estimate.to_dict()) == printed("estimate", *flags, cwd=tmp_path)
    assert "llama2-13b" in estimate._repr_html_()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"devices": "8"}, "devices is '8'"),
        ({"tpp": 2}, "unknown argument 'tpp'"),
        ({"days": 0}, "days is 0"),
        ({"from_log": 3}, "from_log is 3"),
        ({"seq_length": 0}, "seq_length is 0"),
    ],
)
def test_estimate_refuses_what_it_cannot_take(wrong, problem):
    with pytest.raises(UsageError) as caught:
        logparse.estimate(**JOB | wrong)
    assert str(caught.value).startswith(problem)


def test_an_unknown_figure_is_none():
    run = logparse.analyze(LOG)
    assert run.mfu is None
    assert run.tokens_per_second is not None


def test_the_other_rates_are_given_by_name(run):
    for name, rate in run.to_dict()["rates"].items():
        assert run.rate(name)["step_time_ms"] == rate["step_time_ms"]
    with pytest.raises(UsageError, match="did you mean wall_clock"):
        run.rate("wall")


def files_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("[!.]*") if path.is_file())


def test_a_report_is_what_the_command_writes(tmp_path, run):
    run_logparse("analyze", str(LOG), "--hw", "910b3", "-o", "theirs", cwd=tmp_path)
    run.write_report(tmp_path / "ours")
    assert files_of(tmp_path / "ours") == files_of(tmp_path / "theirs")
    for name in files_of(tmp_path / "ours"):
        ours, theirs = ((tmp_path / folder / name).read_bytes() for folder in ("ours", "theirs"))
        # The page of the command ends with the command line.
        assert ours == theirs or name == "report.html", name


def test_tables_are_those_of_the_command(tmp_path, run):
    run_logparse("analyze", str(LOG), "--hw", "910b3", "-o", "theirs", "--no-charts", cwd=tmp_path)
    run.write_tables(tmp_path / "ours")
    assert files_of(tmp_path / "ours") == files_of(tmp_path / "theirs")
    for name in files_of(tmp_path / "ours"):
        assert pl.read_parquet(tmp_path / "ours" / name).equals(pl.read_parquet(tmp_path / "theirs" / name))


def test_nothing_is_overwritten_without_force(tmp_path, run):
    (tmp_path / "report.html").write_text("mine")
    for write in (run.write_report, run.write_tables):
        with pytest.raises(UsageError, match="is not empty") as caught:
            write(tmp_path)
        assert caught.value.remedy == "give another folder with folder=, or overwrite with force=True"
    run.write_tables(tmp_path, force=True, tables="csv")
    assert (tmp_path / "report.html").read_text() == "mine"
    run.write_tables(tmp_path, force=True, tables=["jsonl"])
    assert (tmp_path / "steps.jsonl").exists()
    assert not (tmp_path / "steps.csv").exists()
    with pytest.raises(UsageError, match="is in the way") as caught:
        run.write_report(tmp_path, force=True, chart_formats="json")
    assert caught.value.remedy == "move it, or give another folder with folder="
    (tmp_path / "report.html").unlink()
    run.write_report(tmp_path, force=True, chart_formats="json")
    assert {path.suffix for path in (tmp_path / "charts").iterdir()} == {".json"}


def test_formats_and_folder_names_are_checked(tmp_path, run):
    with pytest.raises(UsageError, match="unknown table format 'cvs'") as caught:
        run.write_tables(tmp_path, tables="cvs")
    assert "did you mean csv" in caught.value.remedy
    with pytest.raises(UsageError, match="unknown chart format 'pgn'"):
        run.write_report(tmp_path, chart_formats=["pgn"])
    with pytest.raises(UsageError, match="the folder has no name"):
        run.write_report(" ")
    assert list(tmp_path.iterdir()) == []


def test_every_chart_has_a_short_name(tmp_path, run):
    assert sorted(FILES.values()) == sorted(CHART_NAMES)
    run.write_report(tmp_path, chart_formats="json")
    written = {path.stem for path in (tmp_path / "charts").iterdir()}
    assert {FILES[name] for name in run.charts.names} == written
    for name, file in FILES.items():
        if name not in run.charts.names:
            with pytest.raises(InsufficientDataError, match=f"no data in the log for the chart '{name}'"):
                getattr(run.charts, name)()
            continue
        drawn = json.loads((tmp_path / "charts" / f"{file}.json").read_text())
        chart = as_json(getattr(run.charts, name)().to_dict())
        assert chart["title"] == drawn["title"]
        assert chart["layer"] == drawn["layer"]


def test_a_chart_takes_an_axis(tmp_path, run):
    assert run.charts.loss(x="hours").to_dict() != run.charts.loss().to_dict()
    with pytest.raises(UsageError, match="unknown axis 'hour'"):
        run.charts.time(x="hour")
    (tmp_path / "run.log").write_text(megatron_log())
    with pytest.raises(InsufficientDataError, match="no data in the log for the axis 'hours'"):
        logparse.analyze(tmp_path / "run.log").charts.time(x="hours")


def test_many_runs_are_those_of_each(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "a.log").write_text(LOG.read_text())
    (folder / "b.log").write_text(OTHER.read_text())
    command = printed("analyze", "--each", folder, "--hw", "910b3", cwd=tmp_path)["runs"]
    assert as_json([run.to_dict() for run in logparse.analyze_many(folder, hw="910b3")]) == command
    listed = logparse.analyze_many([folder / "a.log", folder / "b.log"], hw="910b3")
    assert [run.name for run in listed] == [run["name"] for run in command]
    assert logparse.analyze_many([]) == []


def test_a_run_that_cannot_be_read_gives_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"no such file: .*none\.log"):
        (run,) = logparse.analyze_many([LOG, tmp_path / "none.log"])
    assert run.steps.height == 60
    with pytest.raises(InputError, match=r"none\.log"):
        logparse.analyze_many([tmp_path / "none.log"])


def test_a_comparison_is_that_of_the_command(tmp_path):
    write_run(tmp_path / "a.log", 1)
    write_run(tmp_path / "b.log", 2, ms=1100)
    command = printed("compare", tmp_path / "a.log", tmp_path / "b.log", cwd=tmp_path)
    result = logparse.compare(tmp_path / "a.log", tmp_path / "b.log")
    assert as_json(result.to_dict()) == command
    assert result.verdict == command["verdict"]
    assert "<table" in result._repr_html_()


def test_runs_are_compared_as_their_logs_are(tmp_path):
    logs = [write_run(tmp_path / f"{number}.log", number) for number in range(4)]
    runs = logparse.analyze_many(logs)
    by_path, by_run = logparse.compare(logs[0], logs[1]), logparse.compare(runs[0], runs[1])
    (several, mixed) = (logparse.compare(s[:2], s[2:]) for s in (runs, [*logs[:1], *runs[1:]]))
    for one, other in ((by_path, by_run), (several, mixed)):
        assert one.to_dict()["metrics"] == other.to_dict()["metrics"]
    assert several.to_dict()["baseline"]["asked"] == "0, 1"
    with pytest.raises(UsageError, match="a side is empty"):
        logparse.compare([], runs[0])


def test_sides_that_cannot_be_compared_have_no_verdict(tmp_path):
    sides = write_run(tmp_path / "a.log", 1), write_run(tmp_path / "b.log", 2, seq_length=8192)
    result = logparse.compare(*sides)
    assert result.verdict is None
    assert [field.name for field in result.refused] == ["seq_length"]
    assert logparse.compare(*sides, allow="seq_length").verdict is not None


def test_quantities_are_given_by_name(tmp_path):
    (tmp_path / "run.log").write_text(megatron_log(world_size=8))
    run = logparse.analyze(tmp_path / "run.log", world_size=16, data_parallel_size=8)
    assert run.context.origin("world_size") == flag("--world-size")
    assert run.context.get("world_size") == 16


@pytest.mark.parametrize(
    ("given", "problem", "remedy"),
    [
        ({"world_sze": 8}, "unknown argument 'world_sze'", "did you mean world_size"),
        ({"modle": "llama2-7b"}, "unknown argument 'modle'", "did you mean model"),
        ({"dtype": "bf16"}, "unknown argument 'dtype'", "did you mean precision"),
        ({"tp": 8}, "unknown argument 'tp'", "did you mean tensor_model_parallel_size"),
        ({"world_size": 0}, "world_size is 0", "give a int"),
        ({"world_size": "8"}, "world_size is '8'", "give a int"),
        ({"hw": 910}, "hw is 910", "give a str"),
        ({"warmup": -1}, "warmup is -1", "give a whole number from 0"),
        ({"strict": 1}, "strict is 1", "give a bool"),
        ({"jobs": True}, "jobs is True", "give a int"),
        ({"hw": "h1000"}, "unknown device 'h1000'", "peak_tflops="),
        ({"peak_tflops": -1}, "peak_tflops is -1", "for example peak_tflops=353.89"),
        ({"precision": "fp5"}, "precision is 'fp5'", "use one of bf16"),
        ({"config": "none.toml"}, "cannot read none.toml", "check the path given with config="),
        ({"require": "mfu"}, "require is 'mfu'", "require='mfu>=0.45'"),
        (
            {"hw": "910b3", "peak_tflops": 9, "peak_basis": "matrix"},
            "peak_basis= and peak_tflops= exclude each other",
            "leave one",
        ),
        ({"hw": "910b3", "peak_tflops": 9, "strict": True}, "above the possible maximum", "check hw=, world_size="),
        ({"model": "llama9"}, "unknown model 'llama9'", "by arguments: num_layers="),
    ],
)
def test_an_error_names_arguments(given, problem, remedy):
    with pytest.raises((UsageError, InputError)) as caught:
        logparse.analyze(LOG, **given)
    assert problem in caught.value.problem
    assert str(caught.value).startswith(caught.value.args[0])
    assert remedy in caught.value.remedy
    assert "--" not in str(caught.value)


def test_files_of_several_runs_lead_to_analyze_many(tmp_path):
    for layers in (32, 48):
        (tmp_path / f"{layers}.log").write_text(megatron_log(num_layers=layers))
    with pytest.raises(InputError) as caught:
        logparse.analyze(tmp_path / "32.log", tmp_path / "48.log")
    assert caught.value.remedy.startswith("use logparse.analyze_many() to analyze every file")


def test_an_error_of_a_comparison_names_arguments():
    with pytest.raises(UsageError) as caught:
        logparse.compare(LOG, OTHER, threshold="3")
    assert str(caught.value) == (
        "threshold is '3'\n  try:   write a percentage, as in threshold='3%', or threshold='noise'"
    )
    with pytest.raises(UsageError, match="history=DIR"):
        logparse.compare(LOG, "no-such-log")
    with pytest.raises(UsageError, match="did you mean threshold"):
        logparse.compare(LOG, OTHER, treshold="3%")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass --model (`logparse models --help`)", "pass model= (`logparse models --help`)"),
        ("or pass --no-gated-linear-unit", "or pass gated_linear_unit=False"),
        ("the log of --foo and my--hw.log", "the log of --foo and my--hw.log"),
        ("give --format, or leave out --all-files", "give log_format=, or leave out all_files=True"),
    ],
)
def test_flags_become_arguments(text, expected):
    assert with_arguments(text) == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_names_a_flag(language):
    use_language(language)
    try:
        with pytest.raises(UsageError) as caught:
            logparse.analyze(LOG, precision="fp5")
        assert str(caught.value).startswith("precision ")
        with pytest.raises(UsageError, match="peak_tflops="):
            logparse.analyze(LOG, hw="zzz")
    finally:
        use_language("en")


def test_the_options_are_the_arguments_of_analyze():
    import inspect

    parameters = inspect.signature(logparse.analyze).parameters.values()
    assert [p.name for p in parameters if p.kind == p.KEYWORD_ONLY] == list(OPTION_TYPES)


def test_a_log_must_be_given():
    with pytest.raises(UsageError, match="no log is given"):
        logparse.analyze()


def test_a_notebook_shows_the_answer_and_runs_nothing_of_the_log(tmp_path):
    hostile = tmp_path / "<img src=x onerror=alert(1)>.log"
    hostile.write_text(LOG.read_text())
    shown = logparse.analyze(hostile, hw="910b3")._repr_html_()
    assert "<b>5.01 s</b>" in shown
    assert "<img" not in shown


def python(code, cwd, *folders):
    path = os.pathsep.join(map(str, folders))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_importing_the_package_is_light():
    code = "import logparse, sys; sys.exit('polars' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("first", ["", "import analysis; "])
def test_another_package_called_analysis_gives_a_clear_error(tmp_path, first):
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "__init__.py").write_text("")
    code = f"{first}import logparse\ntry:\n    logparse.analyze\nexcept logparse.errors.InputError as e:\n    print(e)"
    done = python(code, tmp_path, tmp_path)
    assert "another package called 'analysis' is imported in place of logparse's" in done.stdout, done.stderr
    assert str(tmp_path / "analysis" / "__init__.py") in done.stdout
    assert "try:   unset PYTHONPATH" in done.stdout


def test_a_folder_called_analysis_keeps_its_modules(tmp_path):
    (tmp_path / "analysis").mkdir()
    (tmp_path / "analysis" / "my_plots.py").write_text("answer = 42")
    code = "import logparse; logparse.analyze; from analysis.my_plots import answer; print(answer)"
    done = python(code, tmp_path, tmp_path)
    assert done.stdout == "42\n", done.stderr


def test_no_other_name_is_made_up():
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        logparse.analyse  # noqa: B018
