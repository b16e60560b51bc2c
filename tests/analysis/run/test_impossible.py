"""What no device and no clock can give: marked wherever it is shown, refused under --strict."""

import json
import re

import pytest
from helpers import megatron_log, run_logparse

from analysis.metrics import BY_COLUMN

pytestmark = pytest.mark.usefixtures("analysed_once")

# LLaMA2-7B, full recomputation, 32 samples of 4096 tokens in 1.1655 s (the middle of 1001 ms to 1330 ms) on 8 devices:
# 42.864 GFLOP x 131072 tokens / 1.1655 s / 8 = 602.6 TFLOP/s of the model, of a peak of 420: 143.5 %.
PEAK = ["--peak-tflops", "420"]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(megatron_log(330))
    return path


def test_a_value_above_the_peak_is_marked():
    assert BY_COLUMN["mfu"].text(1.44) == "144.00!"
    assert BY_COLUMN["mfu"].text(1.0) == "100.00"
    assert BY_COLUMN["goodput"].text(1.18) == "118.00!"
    assert BY_COLUMN["tokens_per_second_per_device"].text(1e9) == "1,000,000,000.0"


def test_one_line_marks_it(log):
    done = run_logparse("analyze", str(log), *PEAK, "-q", cwd=log.parent)
    assert re.search(r"MFU 14[34]\.\d %!", done.stdout)
    assert done.returncode == 0


def test_json_marks_it(log):
    done = run_logparse("analyze", str(log), *PEAK, "--json", cwd=log.parent)
    (found,) = json.loads(done.stdout)["runs"]
    assert found["impossible"] == ["peak_utilization", "mfu", "hfu"]
    assert found["metrics"]["mfu"]["impossible"] is True
    assert "impossible" not in found["metrics"]["tokens_per_second_per_device"]


@pytest.mark.parametrize("form", [(), ("--markdown",)])
def test_tables_mark_it(log, form):
    done = run_logparse("analyze", str(log), *PEAK, *form, cwd=log.parent)
    marked = [line for line in done.stdout.splitlines() if line.lstrip("| ").startswith(("MFU", "HFU"))]
    assert [line.count("!") for line in marked] == [2]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sentences_mark_it(log, language):
    """MFU, HFU and the parts of the gap to the peak; one that the sentence itself calls too much is bare."""
    done = run_logparse("analyze", str(log), *PEAK, "--markdown", "-v", cwd=log.parent, LANG=language)
    text = [line for line in done.stdout.splitlines() if "%" in line and "|" not in line]
    shares = [share for line in text for share in re.findall(r"1[1-9]\d\.\d ?%!?|-\d{2}\.\d ?%!?", line)]
    assert [share[-1] for share in shares] == ["%", "!", "!", "!"]
    assert shares[0].replace(" ", "") == "143.4%"


def test_the_page_marks_it(log):
    assert run_logparse("analyze", str(log), *PEAK, "-o", "out", cwd=log.parent).returncode == 0
    (page,) = (log.parent / "out").glob("**/*.html")
    # The ends of an axis are no figures of the run.
    text = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.DOTALL)
    shares = re.findall(r"\b1[34]\d\.\d+!? %!?(?! of 420)", text)
    assert shares
    assert all("!" in share for share in shares)


@pytest.mark.parametrize("command", [("analyze",), ("record", "--release", "r1", "--history", "store")])
def test_strict_refuses_it(log, command):
    done = run_logparse(*command, str(log), *PEAK, "--strict", cwd=log.parent)
    assert done.returncode == 2
    assert "peak utilization is 20" in done.stderr
    assert "Traceback" not in done.stderr


def test_strict_takes_what_can_be(log):
    done = run_logparse("analyze", str(log), "--peak-tflops", "2000", "--strict", "-q", cwd=log.parent)
    assert done.returncode == 0
    assert not re.search(r"\d!", done.stdout)
