"""Files: whole or not at all, with the schema's version, and pages that need no network."""

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import polars as pl
import pyarrow.parquet as pq
import pytest
import vl_convert

from analysis.charts import LIGHT
from analysis.files.outputs import (
    CHART_FORMATS,
    DEFAULT_FORMATS,
    check_folder,
    prepare_folder,
    write_charts,
    write_page,
    write_parquet,
    write_whole,
)
from logparse.errors import InputError, UsageError
from logparse.schema import SCHEMA_VERSION


def chart(value: float = 1.0) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[{"step": 1, "v": value}])).mark_point().encode(x="step:Q", y="v:Q")


def test_a_folder_is_made_with_its_parents(tmp_path):
    prepare_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_an_empty_folder_is_used(tmp_path):
    check_folder(tmp_path, force=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty") as caught:
        check_folder(tmp_path, force=False)
    assert "--force" in str(caught.value.remedy)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_force_takes_a_folder_with_files_and_deletes_nothing(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    check_folder(tmp_path, force=True)
    prepare_folder(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("force", [False, True])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path, force):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        check_folder(tmp_path / "out", force)
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the folder") as caught:
        prepare_folder(tmp_path / "file" / "out")
    assert caught.value.remedy == "give another folder with -o"


def test_a_file_appears_whole_and_alone(tmp_path):
    def write(path: Path) -> None:
        path.write_text("new")
        assert (tmp_path / "a.txt").read_text() == "old", "the file must not change before it is whole"

    (tmp_path / "a.txt").write_text("old")
    write_whole(tmp_path / "a.txt", write)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("raised", "expected"), [(OSError(28, "No space left on device"), InputError), (ValueError("x"), ValueError)]
)
def test_a_writer_that_raises_leaves_nothing_and_the_old_file(tmp_path, raised, expected):
    def write(path: Path) -> None:
        path.write_text("half")
        raise raised

    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(expected):
        write_whole(tmp_path / "a.txt", write)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_write_that_fails_says_which_file_and_why(tmp_path):
    with pytest.raises(InputError, match=r"cannot write .*a\.parquet: No such file or directory"):
        write_parquet(pl.DataFrame({"a": [1]}), tmp_path / "missing" / "a.parquet")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_an_input_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        write_whole(tmp_path / "a.txt", lambda p: p.write_text("x"))


def test_parquet_keeps_the_frame_and_carries_the_version_of_the_schema(tmp_path):
    frame = pl.DataFrame({"step": [1, 2], "loss": [0.5, None], "run": ["a", "b"]})
    write_parquet(frame, tmp_path / "steps.parquet")
    assert pl.read_parquet(tmp_path / "steps.parquet").equals(frame)
    metadata = pq.read_metadata(tmp_path / "steps.parquet").metadata
    assert metadata[b"logparse.schema_version"] == str(SCHEMA_VERSION).encode()
    assert [p.name for p in tmp_path.iterdir()] == ["steps.parquet"]


def test_every_chart_is_written_in_three_forms(tmp_path):
    paths = write_charts({"loss": chart(), "mfu": chart()}, tmp_path / "charts")
    names = [f"{stem}.{ending}" for stem in ("loss", "mfu") for ending in DEFAULT_FORMATS]
    assert sorted(p.name for p in (tmp_path / "charts").iterdir()) == sorted(names)
    assert sorted(p.name for p in paths) == sorted(names)


@pytest.mark.parametrize("form", CHART_FORMATS)
def test_only_the_forms_that_are_asked_for_are_written(tmp_path, form):
    write_charts({"v": chart()}, tmp_path, [form])
    assert [p.name for p in tmp_path.iterdir()] == [f"v.{form}"]


def test_the_forms_are_what_their_endings_say(tmp_path):
    write_charts({"v": chart(4.25)}, tmp_path, CHART_FORMATS)
    specification = json.loads((tmp_path / "v.json").read_text())
    assert specification == chart(4.25).to_dict() | {"config": LIGHT}
    assert (tmp_path / "v.svg").read_text().startswith("<svg")
    assert (tmp_path / "v.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "4.25" in (tmp_path / "v.html").read_text()


def test_a_theme_changes_the_picture_and_takes_the_place_of_our_look(tmp_path):
    write_charts({"ours": chart()}, tmp_path)
    write_charts({"dark": chart()}, tmp_path, theme="dark")
    assert LIGHT["range"]["category"][0] in (tmp_path / "ours.svg").read_text()
    assert LIGHT["range"]["category"][0] not in (tmp_path / "dark.svg").read_text()
    assert "#333" in (tmp_path / "dark.svg").read_text()


@pytest.mark.parametrize(
    ("options", "kind", "known"), [({"theme": "drak"}, "theme", "dark"), ({"formats": ["jpg"]}, "chart format", "png")]
)
def test_an_unknown_theme_or_form_is_refused_with_the_known_ones(tmp_path, options, kind, known):
    with pytest.raises(UsageError, match=f"unknown {kind}") as caught:
        write_charts({"v": chart()}, tmp_path / "charts", **options)
    assert known in str(caught.value.remedy)
    assert not (tmp_path / "charts").exists()


def test_chinese_is_drawn_with_glyphs_in_pictures(tmp_path):
    """A font without a character draws each the same empty box; two texts of one length then look alike."""
    pngs = [vl_convert.vegalite_to_png(chart().properties(title=text).to_json()) for text in ("吞吐", "耗时")]
    if subprocess.run(["fc-list", ":lang=zh"], capture_output=True, text=True, check=False).stdout == "":
        pytest.skip("this machine has no Chinese font")
    assert pngs[0] != pngs[1]


def test_a_page_is_written_whole(tmp_path):
    assert write_page("<p>吞吐", tmp_path / "report.html").read_text(encoding="utf-8") == "<p>吞吐"


def test_charts_are_written_over(tmp_path):
    write_charts({"v": chart(1.5)}, tmp_path)
    write_charts({"v": chart(2.5)}, tmp_path)
    assert "2.5" in (tmp_path / "v.json").read_text()
    assert len(list(tmp_path.iterdir())) == len(DEFAULT_FORMATS)


class Loads(HTMLParser):
    """What a page loads when it is opened: the addresses in the tags outside of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_of_a_chart_loads_nothing_from_a_network(tmp_path):
    write_charts({"v": chart()}, tmp_path, ["html"])
    page = (tmp_path / "v.html").read_text()
    loads = Loads()
    loads.feed(page)
    assert loads.addresses == []
    assert re.search(r"<script[^>]*\ssrc\s*=", page) is None
    assert re.search(r"import\s*\(?[\"']https?:|@import", page) is None
    assert "vegaEmbed" in page, "the program that draws must be in the page"


def test_no_text_of_a_log_ends_the_script_of_a_page(tmp_path):
    hostile = "a</script><script>alert(1)</script>"
    named = chart().properties(title=hostile)
    write_charts({"x": named}, tmp_path, ["html"])
    page = (tmp_path / "x.html").read_text()
    assert "</script><script>alert" not in page
    assert "a\\u003c/script>\\u003cscript>alert(1)" in page
