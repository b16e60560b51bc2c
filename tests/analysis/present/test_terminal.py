"""What people see: one screen, never a number cut, the same in Markdown, one line with --quiet."""

import json
import re
import shutil
from pathlib import Path

import pytest
from helpers import ROOT, megatron_line, run_logparse, run_process
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from analysis.present.markdown import markdown
from analysis.present.parts import Sentence, Table
from analysis.present.terminal import BARS, sparkline
from analysis.present.views.ending import LONGEST

pytestmark = pytest.mark.usefixtures("analysed_once")

LOG = str(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log")
NUMBER = re.compile(r"[0-9][0-9,.]*")
RATES = re.compile(
    r"^(steady|including stalls|all steps|wall clock|tokens/s/p|TFLOP/s/p.*?|MFU, %) +[0-9,.]+ .*", re.MULTILINE
)


def test_bars_reach_from_the_least_to_the_greatest_value():
    assert sparkline([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0], 80) == "▁▂▃▄▅▆▇█"


def test_what_lies_far_from_most_does_not_flatten_the_rest():
    assert sparkline([900.0, *[10.0, 11.0] * 8, 0.1], 80) == "█" + "▄▅" * 8 + "▁"


def test_values_that_are_all_the_same_are_low_bars():
    assert sparkline([10.0] * 9, 80) == "▁" * 9


def test_a_bar_that_stands_for_several_steps_shows_the_slowest():
    assert sparkline([10.0] * 50 + [30.0] + [10.0] * 49, 10) == "▁▁▁▁▁█▁▁▁▁"


@given(st.lists(st.floats(0, 1e12), min_size=1), st.integers(1, 200))
def test_a_sparkline_fits_and_holds_nothing_but_bars(values, width):
    drawn = sparkline(values, width)
    assert len(drawn) == min(width, len(values))
    assert set(drawn) <= set(BARS)


@pytest.mark.parametrize("width", ["40", "60", "79", "80", "200"])
def test_no_number_is_cut_at_any_width(width, tmp_path):
    wide = run_logparse("analyze", LOG, "--hw", "910b", "-v", cwd=tmp_path, COLUMNS="200").stdout
    narrow = run_logparse("analyze", LOG, "--hw", "910b", "-v", cwd=tmp_path, COLUMNS=width).stdout
    assert "…" not in narrow
    numbers = {number for found in RATES.finditer(wide) for number in NUMBER.findall(found.group())}
    assert len(numbers) > 30
    assert numbers <= set(NUMBER.findall(narrow))


def test_a_table_that_is_too_wide_is_turned_where_it_then_fits(tmp_path):
    shown = {
        width: run_logparse("analyze", LOG, "--hw", "910b", "-v", cwd=tmp_path, COLUMNS=width).stdout
        for width in ("80", "120")
    }
    assert re.search(r"^ +steady +including stalls +all steps +wall clock$", shown["80"], re.MULTILINE)
    assert re.search(r"^steady +[0-9,.]+ ", shown["120"], re.MULTILINE)
    assert max(map(len, shown["80"].splitlines())) <= 80


def test_the_trace_of_step_times_says_where_its_bars_are_cut(tmp_path):
    shown = run_logparse("analyze", LOG, "-v", cwd=tmp_path).stdout
    assert re.search(r"^step time over the run, 4,986 to 5,057 ms, 3 above: █[▁-█]{20,}$", shown, re.MULTILINE)


def test_no_bars_where_the_terminal_cannot_show_them(tmp_path):
    shown = run_process("analyze", LOG, cwd=tmp_path, PYTHONIOENCODING="ascii").stdout
    assert not set(shown) & set(BARS)
    assert "step time" in shown


def test_quiet_is_one_line_for_each_run_and_nothing_beside_it(tmp_path):
    done = run_logparse("analyze", "--each", LOG, LOG, "-q", "--hw", "910b3", "-o", "out", "--no-charts", cwd=tmp_path)
    first, second = done.stdout.splitlines()
    name = Path(LOG).parent.name
    figures = "5.01 s/step, 3,270 tokens/s/p, 149 TFLOP/s/p, MFU 47.5 %, goodput 77.1 %"
    assert first.endswith(f": {figures}")
    assert second.endswith(f": {figures}")
    assert (first.split(":")[0], second.split(":")[0]) == (name, f"{name}-2")
    assert done.stderr == ""
    assert (tmp_path / "out" / "steps.parquet").exists()


def test_colour_goes_where_it_is_refused(tmp_path):
    coloured = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[33m" in run_logparse("analyze", LOG, "--hw", "910b", "-v", cwd=tmp_path, **coloured).stdout
    for options, env in ((["--no-color"], {}), ([], {"NO_COLOR": "1"})):
        shown = run_logparse("analyze", LOG, "--hw", "910b", "-v", *options, cwd=tmp_path, **coloured, **env).stdout
        assert "\x1b[33m" not in shown


def test_markdown_holds_the_same_numbers_as_the_screen(tmp_path):
    screen = run_logparse("analyze", LOG, "--hw", "910b3", "-v", cwd=tmp_path, COLUMNS="120").stdout
    text = run_logparse("analyze", LOG, "--hw", "910b3", "-v", "--markdown", cwd=tmp_path).stdout
    assert text.startswith("### llama2-7b on 8 x Ascend910B3, bf16, Megatron-LM core 0.5 or later")
    shown = list(RATES.finditer(screen))
    assert len(shown) >= 3
    for found in shown:
        cells = [cell.strip() for cell in text.splitlines()[_row(text, found.group(1))].strip("|").split("|")]
        assert " ".join(" ".join(cells).split()) == " ".join(found.group().split())


def _row(text: str, rate: str) -> int:
    return next(i for i, line in enumerate(text.splitlines()) if line.startswith(f"| {rate} |"))


def test_words_of_a_log_are_no_markdown():
    text = markdown([Sentence("a [link](http://x) <b> `c` *d*\n# e", "warning"), Table(("", "n"), (("a|b", "1"),))])
    assert text.splitlines()[0] == r"- **a \[link\](http\://x) \<b\> \`c\` \*d\* \# e**"
    assert r"| a\|b | 1 |" in text


def test_ways_of_printing_exclude_each_other(tmp_path):
    done = run_logparse("analyze", LOG, "--json", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr


def test_peak_basis_without_a_device_to_choose_from_is_refused(tmp_path):
    done = run_logparse("analyze", LOG, "--peak-tflops", "300", "--peak-basis", "headline", cwd=tmp_path)
    assert done.returncode == 2
    assert "--peak-basis and --peak-tflops exclude each other" in done.stderr


def test_warnings_come_before_what_is_merely_told(tmp_path):
    shown = run_logparse("analyze", LOG, "--hw", "910b", "-v", cwd=tmp_path).stdout
    signs = [line[0] for line in shown.splitlines() if line.startswith(("! ", "- "))]
    assert signs == sorted(signs)
    assert {"!", "-"} == set(signs)


def test_a_run_of_one_step_has_no_trace(tmp_path):
    (tmp_path / "run.log").write_text(megatron_line(1) + "\n")
    shown = run_logparse("analyze", "run.log", cwd=tmp_path).stdout
    assert "step time over the run" not in shown


def test_quiet_leaves_out_what_is_unknown(tmp_path):
    (tmp_path / "run.log").write_text(megatron_line(1) + "\n")
    (line,) = run_logparse("analyze", "run.log", "-q", cwd=tmp_path).stdout.splitlines()
    assert line == "run: 1.00 s/step, short log, 1 warning"


def test_one_bad_log_does_not_cost_the_others(tmp_path):
    (tmp_path / "bad.log").write_text("hello\n")
    done = run_logparse("analyze", "--each", LOG, "bad.log", "--quiet", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout.startswith("run: 5.01 s/step, 3,270 tokens/s/p")
    assert "where: bad.log" in done.stderr


def test_a_folder_without_a_name_is_refused(tmp_path):
    (tmp_path / "steps.parquet").write_text("mine")
    done = run_logparse("analyze", LOG, "-o", "", "--force", cwd=tmp_path)
    assert done.returncode == 2
    assert "-o has an empty folder name" in done.stderr
    assert (tmp_path / "steps.parquet").read_text() == "mine"


def test_json_is_the_same_on_every_machine(tmp_path):
    plain, chinese = (
        run_logparse("analyze", LOG, "--json", cwd=tmp_path, LANG=lang) for lang in ("C.UTF-8", "zh_CN.UTF-8")
    )
    assert plain.stdout == chinese.stdout == run_logparse("analyze", LOG, "--json", "--lang", "zh", cwd=tmp_path).stdout


def test_a_device_beats_the_peak_of_the_file_and_the_file_is_named(tmp_path):
    (tmp_path / "c.toml").write_text("peak_tflops = 400\n")
    by_flag, by_file = (
        json.loads(run_logparse("analyze", LOG, "--config", "c.toml", "--json", *flags, cwd=tmp_path).stdout)
        for flags in (["--hw", "910b3"], [])
    )
    assert by_flag["runs"][0]["device"]["peak_tflops_per_second"] == pytest.approx(294.91)
    assert by_file["runs"][0]["device"]["source"] == "config file c.toml"


def test_number_type_in_the_file(tmp_path):
    (tmp_path / "c.toml").write_text('dtype = "fp16"\n')
    done = run_logparse("analyze", LOG, "--config", "c.toml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["runs"][0]["context"]["precision"]["value"] == "fp16"
    (tmp_path / "c.toml").write_text('dtype = "fp16"\nprecision = "bf16"\n')
    assert "are the same" in run_logparse("analyze", LOG, "--config", "c.toml", cwd=tmp_path).stderr


def test_warm_up_comes_with_its_evidence(tmp_path):
    shown = " ".join(run_logparse("analyze", LOG, "-v", cwd=tmp_path).stdout.split())
    assert "- warm-up: 1 row of start 1, up to 21,873 ms (median afterwards 5,009 ms)" in shown
    given = run_logparse("analyze", LOG, "-v", "--warmup", "3", cwd=tmp_path).stdout
    assert "- warm-up: the first 3 rows of each start (--warmup)" in given


def test_quiet_and_verbose_exclude_each_other(tmp_path):
    done = run_logparse("analyze", LOG, "-q", "-v", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--quiet and --verbose exclude each other" in done.stderr


def test_quiet_keeps_the_whole_name_and_leaves_out_figures(tmp_path):
    name = "a-long-name-of-a-run-on-64-nodes-with-all-of-its-settings-in-it"
    shutil.copy(ROOT / LOG, tmp_path / f"{name}.log")
    (line,) = run_logparse("analyze", f"{name}.log", "-q", "--hw", "910b3", cwd=tmp_path).stdout.splitlines()
    assert line == f"{name}: 5.01 s/step, MFU 47.5 %"


def test_quiet_shows_figures_before_the_ending(tmp_path):
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    (tmp_path / "run.log").write_text("".join(megatron_line(step) + "\n" for step in range(1, 31)) + error)
    (line,) = run_logparse("analyze", "run.log", "-q", "--hw", "910b3", cwd=tmp_path).stdout.splitlines()
    assert re.match(r"run: 1\.00 s/step, .*failed at step 30 of [\d,]+: device memory", line)
    (line,) = run_logparse("diagnose", "run.log", "-q", cwd=tmp_path).stdout.splitlines()
    assert line.startswith("run: failed at step 30 of ")
    assert line.endswith(": out of device memory, line 31")
    assert cell_len(line) <= LONGEST


def test_a_binary_file_named_as_a_log_is_named_among_the_unreadable(tmp_path):
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        shutil.copy(ROOT / LOG, tmp_path / f"logs/{name}.log")
    (tmp_path / "logs/bin.log").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "logs/weights.bin").write_bytes(bytes(range(256)) * 20)
    done = run_logparse("analyze", "--each", "logs", "--hw", "910b3", cwd=tmp_path)
    assert "! could not be read: 1 (bin)" in done.stdout
    assert "peak of Ascend" in done.stdout
    assert (done.returncode, "not a text file: logs/bin.log" in done.stderr) == (2, True)


def test_a_prefix_that_two_programs_print_is_shown_once(tmp_path):
    error = "[rank0]:[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    (tmp_path / "run.log").write_text("".join(megatron_line(step) + "\n" for step in range(1, 31)) + error)
    for command in ("analyze", "diagnose"):
        shown = run_logparse(command, "run.log", cwd=tmp_path).stdout
        assert "[rank0]: torch.OutOfMemoryError" in shown
        assert "[rank0]:[rank0]:" not in shown


def test_a_first_row_as_fast_as_the_rest_is_said_to_be_so(tmp_path):
    (tmp_path / "run.log").write_text("".join(megatron_line(step) + "\n" for step in range(1, 5)))
    shown = " ".join(run_logparse("analyze", "run.log", "-v", cwd=tmp_path).stdout.split())
    assert "up to 1,000 ms (median afterwards 1,000 ms)" not in shown
    assert "1 row of start 1, as fast as later rows (1,000 ms)" in shown
