"""Pictures that other processes draw: the same as those drawn here, whatever becomes of the processes."""

import os
import signal
import subprocess
import sys

import pytest
from helpers import megatron_log, run_logparse

import analysis.files.pictures
from analysis.charts.plot import UNSEEN
from analysis.files.pictures import DrawingPool, DrawingProcess, NoPictureError, draw, drawing_pool

FORMS = ("png", "svg")
POINTS = {"mark": "point", "encoding": {"x": {"field": "a", "type": "quantitative"}}}


def spec(*values: float) -> dict[str, object]:
    return {"data": {"values": [{"a": value} for value in values]}} | POINTS


def test_each_process_draws_what_this_one_would():
    pool, specs = DrawingPool(), [spec(number) for number in range(analysis.files.pictures.MOST_PROCESSES)]
    # To put a page's script together takes seconds, once a process.
    forms = [("html", *FORMS), *[FORMS] * (len(specs) - 1)]
    begun = [pool.begin(*order, None) for order in zip(specs, forms, strict=True)]
    assert [one.result() for one in begun] == [draw(*order, None) for order in zip(specs, forms, strict=True)]


def test_a_layer_for_the_pointer_is_no_part_of_a_picture():
    shown, unseen = POINTS, POINTS | {"mark": {"type": "rule", "opacity": UNSEEN}}
    both = draw({"data": {"values": [{"a": 1}]}, "layer": [shown, unseen]}, ("html", *FORMS), None)
    one = draw({"data": {"values": [{"a": 1}]}, "layer": [shown]}, FORMS, None)
    assert (both["svg"], both["png"]) == (one["svg"], one["png"])
    assert b"rule" in both["html"]


def test_a_chart_whose_process_is_killed_is_drawn_by_another(monkeypatch):
    begun: list[DrawingProcess] = []

    class Killed(DrawingProcess):
        def __init__(self) -> None:
            super().__init__()
            begun.append(self)
            if len(begun) == 1:
                os.kill(self._process.pid, signal.SIGKILL)

    monkeypatch.setattr(analysis.files.pictures, "DrawingProcess", Killed)
    monkeypatch.setattr(analysis.files.pictures, "MOST_PROCESSES", 1)
    pool = DrawingPool()
    assert pool.begin(spec(1), FORMS, None).result() == draw(spec(1), FORMS, None)
    assert (len(begun), pool.missing) == (2, 0)


def test_where_every_process_dies_nothing_is_drawn_and_this_one_goes_on(monkeypatch):
    begun: list[DrawingProcess] = []

    class Killed(DrawingProcess):
        def __init__(self) -> None:
            super().__init__()
            begun.append(self)
            os.kill(self._process.pid, signal.SIGKILL)

    monkeypatch.setattr(analysis.files.pictures, "DrawingProcess", Killed)
    monkeypatch.setattr(analysis.files.pictures, "MOST_PROCESSES", 1)
    pool = DrawingPool()
    for _ in range(3):
        with pytest.raises(NoPictureError):
            pool.begin(spec(1), FORMS, None).result()
    # The second chart does not try again.
    assert (len(begun), pool.missing) == (analysis.files.pictures.ATTEMPTS, 3)


def test_where_no_process_can_be_started_nothing_is_drawn(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere")
    with pytest.raises(NoPictureError):
        DrawingPool().begin(spec(1), FORMS, None).result()


def test_after_a_stop_nothing_is_drawn():
    pool = DrawingPool()
    pool.stop()
    with pytest.raises(NoPictureError):
        pool.begin(spec(1), FORMS, None).result()


def test_what_is_no_chart_raises_as_it_would_here_and_the_process_goes_on():
    pool = DrawingPool()
    for _ in range(5):
        with pytest.raises(ValueError):  # noqa: PT011 - the library's own text
            pool.begin({"mark": "nothing"}, ("svg",), None).result()
    assert pool.begin(spec(1), FORMS, None).result() == draw(spec(1), FORMS, None)


def test_the_processes_end_with_the_one_that_started_them():
    code = "from analysis.files.pictures import drawing_pool; one = drawing_pool()._free.get(); print(one._process.pid)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def test_without_the_library_charts_are_written_as_json(tmp_path, monkeypatch):
    """And a picture that is asked for is refused before any work."""
    (tmp_path / "run.log").write_text(megatron_log(20))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    drawing_pool.cache_clear()
    done = run_logparse("analyze", "run.log", "--hw", "910b3", "-o", "out", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        0,
        "logparse: a chart as PNG or SVG needs vl-convert, which is not installed\n"
        "  try:   pip install 'logparse[pictures]'\n",
    )
    assert {path.suffix for path in (tmp_path / "out/charts").iterdir()} == {".json"}
    assert "vegaEmbed" in (tmp_path / "out/report.html").read_text()
    drawing_pool.cache_clear()


@pytest.mark.parametrize("option", ["--chart-format=svg", "--theme=dark"])
def test_a_picture_that_is_asked_for_needs_the_library(tmp_path, monkeypatch, option):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    done = run_logparse("analyze", "no.log", "-o", "out", option, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        f"logparse: {option.partition('=')[0]} needs vl-convert, which is not installed\n"
        "  try:   pip install 'logparse[pictures]'\n",
    )
