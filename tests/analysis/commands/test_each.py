"""Many runs in one call: the table, which runs it shows, the files that it leaves."""

import csv
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from helpers import GOLDENS, ROOT, SETTINGS, arguments_dump, megatron_line, megatron_log, run_logparse
from polars.testing import assert_frame_equal

from analysis.batch import analyze_runs
from analysis.batch.run_table import RUNS_COLUMNS
from analysis.commands import _options as options
from analysis.commands import _output_folder, _run_results
from analysis.files import outputs

pytestmark = pytest.mark.usefixtures("analysed_once")

FIXTURES = {
    "core": "megatron/core-v0.12-llama2-7b",
    "ramp": "megatron/rampup-resumed",
    "qwen": "mindformers/family-b-1.5",
    "bare": "mindspore/lossmonitor",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of four runs, one of which says little, and a log without a step line."""
    place = tmp_path_factory.mktemp("runs")
    (place / "logs").mkdir()
    for name, fixture in FIXTURES.items():
        shutil.copy(ROOT / "fixtures" / fixture / "run.log", place / "logs" / f"{name}.log")
    (place / "logs/crashed.log").write_text("Traceback (most recent call last):\n")
    return place


def each(folder, *options, **env):
    return run_logparse("analyze", "--each", "logs", "--hw", "910b3", *options, cwd=folder, **env)


def shown(folder, *options):
    """The names of the runs that are shown, in their order."""
    return [run["name"] for run in json.loads(each(folder, "--json", *options).stdout)["runs"]]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("80", ["--sort", "mfu"]),
        ("120", ["--sort", "mfu"]),
        ("where", ["--where", "mfu<40%", "--where", "goodput<0.6"]),
        ("none", ["--where", "mfu>90%"]),
        ("markdown", ["--markdown"]),
        ("zh", ["--lang", "zh"]),
        ("impossible", ["--peak-tflops", "100"]),
    ],
)
def test_the_table_of_runs(folder, name, options, update_goldens):
    done = each(folder, *options, COLUMNS=name if name.isdigit() else "120")
    assert done.returncode == 3
    assert done.stderr.count("crashed.log") == 1
    golden = GOLDENS / "runs" / f"{name}.txt"
    if update_goldens:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == golden.read_text(encoding="utf-8")


def test_every_way_of_printing_shows_the_runs_that_are_asked_for(folder):
    assert shown(folder) == ["bare", "core", "qwen", "ramp"]
    assert shown(folder, "--sort", "mfu") == ["ramp", "qwen", "core", "bare"]
    assert shown(folder, "--sort=-mfu") == ["core", "qwen", "ramp", "bare"]
    assert shown(folder, "--where", "with_stalls_tokens_per_second_per_device>=2500", "--sort", "run") == [
        "core",
        "qwen",
    ]
    lines = each(folder, "-q", "--sort", "goodput", "--where", "mfu>0").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["qwen", "ramp", "core"]


def test_verbose_shows_every_run_behind_the_table(folder):
    table = each(folder).stdout
    everything = each(folder, "-v").stdout
    assert everything.startswith(table)
    assert everything.count("\ninputs\n") == 4
    assert "\ninputs\n" not in table
    markdown = each(folder, "-v", "--markdown", "--where", "mfu>0").stdout
    assert markdown.startswith("### 3 of 4 runs\n")
    assert markdown.count("### ") == 4


@pytest.mark.parametrize("options", [["--where", "mfu<1"], ["--sort", "mfu"]], ids=" ".join)
def test_what_chooses_among_runs_needs_each(folder, options):
    done = run_logparse("analyze", "logs/core.log", *options, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{options[0]} requires --each" in done.stderr


@pytest.mark.parametrize("options", [["--where", "mfu"], ["--where", "mf<1"], ["--sort", "mf"]], ids=" ".join)
def test_what_nobody_can_choose_by_is_refused_before_a_log_is_read(folder, options):
    done = run_logparse("analyze", "--each", "missing.log", *options, cwd=folder)
    assert done.returncode == 2
    assert "missing.log" not in done.stderr
    assert "try:" in done.stderr


@pytest.fixture(scope="module")
def written(folder):
    done = each(folder, "-o", "out", "--chart-format", "json", "--where", "mfu>0", "--sort", "mfu")
    assert done.stderr.startswith("wrote out/index.html\nwrote out/report.html\n")
    return folder / "out"


def test_the_tables_hold_all_runs_in_the_order_given(written):
    runs = pl.read_parquet(written / "runs.parquet")
    assert runs.columns == [column.name for column in RUNS_COLUMNS]
    assert runs["run"].to_list() == ["bare", "core", "qwen", "ramp"]
    with (written / "runs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == runs["run"].to_list()
    assert [float(row["mfu"] or "nan") for row in rows][1:] == runs["mfu"].to_list()[1:]
    assert list(rows[0]) == runs.columns


def test_every_run_has_its_page_and_the_index_leads_there(written):
    index = (written / "index.html").read_text(encoding="utf-8")
    titles = set()
    for name in FIXTURES:
        page = written / "runs" / name / "report.html"
        assert f'<a href="runs/{name}/report.html">{name}</a>' in index
        titles.add(page.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0])
        links = re.findall(r'<p class="links">(.*?)</p>', page.read_text(encoding="utf-8"))
        places = [f"../../{file}" for file in ("index.html", "report.html", "steps.parquet", "summary.parquet")]
        assert re.findall('href="(.*?)"', links[0]) == places
        assert all((page.parent / place).is_file() for place in places)
    assert len(titles) == len(FIXTURES)
    assert '<a href="report.html">all runs in the same charts</a>' in index
    assert "crashed.log" in index
    assert (written / "report.html").is_file()


def test_without_charts_there_is_an_index_and_no_page(folder, tmp_path):
    assert each(folder, "-o", str(tmp_path / "out"), "--no-charts").returncode == 3
    assert not (tmp_path / "out/runs").exists()
    assert 'href="runs/' not in (tmp_path / "out/index.html").read_text(encoding="utf-8")


def test_what_an_earlier_call_left_goes(folder, tmp_path):
    out = tmp_path / "out"
    assert each(folder, "-o", str(out), "--chart-format", "json").returncode == 3
    (out / "runs/core/mine.txt").write_text("mine")
    one = ["--hw", "910b3", "-o", str(out), "--chart-format", "json", "--force"]
    assert run_logparse("analyze", "--each", "logs/ramp.log", *one, cwd=folder).returncode == 0
    assert [path.parent.name for path in (out / "runs").glob("*/report.html")] == ["ramp"]
    assert (out / "runs/core/mine.txt").exists()
    assert run_logparse("analyze", "logs/ramp.log", *one, cwd=folder).returncode == 0
    assert sorted(path.name for path in out.glob("runs*")) == ["runs", "runs.parquet"]
    assert not [*(out / "runs").glob("*/report.html")]
    assert not (out / "index.html").exists()


def test_runs_that_cannot_be_told_apart_on_a_page_have_none_together(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_output_folder, "MOST_ON_A_PAGE", 3)
    assert each(folder, "-o", str(tmp_path), "--chart-format", "json", "-q").returncode == 3
    assert len([*tmp_path.glob("runs/*/report.html")]) == 4
    assert not (tmp_path / "report.html").exists()


def test_of_more_runs_pages_are_drawn_where_they_are_asked_for(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "MOST_DRAWN", 1)
    two = ["analyze", "--each", "logs/core.log", "logs/bare.log", "-o"]
    done = run_logparse(*two, str(tmp_path / "few"), cwd=folder)
    assert "no charts and pages of so many runs; add --charts to draw them" in done.stderr
    assert not [*(tmp_path / "few").rglob("report.html")]
    assert (tmp_path / "few/index.html").exists()
    run_logparse(*two, str(tmp_path / "all"), "--chart-format", "json", "-q", cwd=folder)
    assert len([*(tmp_path / "all").rglob("report.html")]) == 3


def test_thousands_of_runs_give_the_same_as_few(folder, tmp_path, monkeypatch):
    """Outputs of most runs lie in a file, tables are written in parts, and other processes read the runs."""
    few = each(folder, "-o", str(tmp_path / "few"), "--no-charts", "--json")
    monkeypatch.setattr(_run_results, "MOST_HELD", 1)
    monkeypatch.setattr(outputs, "MOST_FRAMES", 2)
    monkeypatch.setattr(analyze_runs, "WORTH", 0)
    many = each(folder, "-o", str(tmp_path / "many"), "--no-charts", "--json", "--jobs", "2")
    assert (many.returncode, many.stdout, many.stderr) == (few.returncode, few.stdout, few.stderr)
    names = sorted(path.name for path in (tmp_path / "few").iterdir())
    assert sorted(path.name for path in (tmp_path / "many").iterdir()) == names
    for name in names:
        if name.endswith(".parquet"):
            assert_frame_equal(pl.read_parquet(tmp_path / "few" / name), pl.read_parquet(tmp_path / "many" / name))


def test_names_that_a_shell_or_a_page_could_take_for_more(tmp_path):
    """A page lies where its link leads, whatever the file is called."""
    names = ["<script>alert(1)", "a'b\"c", "50% & more #1", "x" * 200, "空 格"]
    (tmp_path / "logs").mkdir()
    for name in names:
        (tmp_path / "logs" / f"{name}.log").write_text(megatron_log(4))
    command = ["analyze", "--each", "logs", "-o", "out", "--chart-format", "json", "-q"]
    assert run_logparse(*command, cwd=tmp_path).returncode == 0
    assert {path.parent.name for path in Path(tmp_path / "out/runs").glob("*/report.html")} == set(names)
    assert "<script>alert(1)" not in (tmp_path / "out/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Six runs that are alike, the last one a fifth slower."""
    place = tmp_path_factory.mktemp("alike")
    (place / "logs").mkdir()
    for name, ms in zip("abcdef", [5000, 5010, 4990, 5005, 5000, 6000], strict=True):
        lines = [megatron_line(step, ms + step % 3) + "\n" for step in range(1, 13)]
        (place / "logs" / f"{name}.log").write_text("".join([arguments_dump(SETTINGS), *lines]))
    return place


def test_what_stands_out_is_said_in_every_way(alike):
    words = "1 of 6 runs are outliers: f (17 % fewer tokens/s/p than the median)"
    assert f"! {words}\n" in each(alike).stdout
    assert words in each(alike, "--markdown").stdout
    told = json.loads(each(alike, "--json").stdout)["stands_out"]
    assert (told["code"], told["text"]) == ("runs_stand_out", words)
    (run,) = told["fields"]["runs"]
    (figure,) = run["fields"]["figures"]
    assert figure["fields"]["metric"] == "tokens_per_second_per_device"
    assert json.loads(each(alike, "--json", "--where", "mfu>45%").stdout)["stands_out"] is None


def test_shards_are_judged_among_all_runs(alike):
    for shard in ("1/2", "2/2"):
        each(alike, "--shard", shard, "-o", "parts", "--no-charts")
    done = run_logparse("merge", "parts", "--json", "--sort", "mfu", cwd=alike)
    assert json.loads(done.stdout)["stands_out"]["fields"]["of"] == 6
    runs = pl.read_parquet(alike / "parts/runs.parquet")
    assert runs.drop_nulls("stands_out")["run"].to_list() == ["f"]
    assert runs["run"].to_list() == list("abcdef")
    index = (alike / "parts/index.html").read_text(encoding="utf-8")
    assert index.index('<th scope="row">f') < index.index('<th scope="row">a')
