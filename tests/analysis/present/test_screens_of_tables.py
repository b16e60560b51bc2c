"""Screens of devices, models and formulas: no column is lost on a narrow terminal, and each language has its words."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from analysis.compare.verdict import judge
from analysis.hardware.devices import all_devices, find_device
from analysis.metrics import JUDGED
from analysis.model.catalogue import all_models, find_model
from analysis.present.terminal import print_parts
from analysis.present.views.baselines import baselines_parts
from analysis.present.views.compare import _p
from analysis.present.views.hardware import device_parts, hardware_document, hardware_parts
from analysis.present.views.models import model_parts, models_document, models_parts
from analysis.published.baselines import published
from logparse.language import LANGUAGES, speaking


def printed(parts, width, terminal=False):
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, force_terminal=terminal, color_system=None)
    print_parts(console, parts)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_table_with_long_names_keeps_its_headings_and_its_prose(language, width):
    with speaking(language):
        lines = printed(hardware_parts(all_devices()), width)
        headings = hardware_parts(())[1].headings
    assert max(map(cell_len, lines[:-3])) <= width
    assert [word for word in headings if word not in lines[1]] == []
    row = next(line for line in lines if line.startswith("Ascend910B2 "))
    assert row.split()[-1] == "910b2"
    # names are wrapped, and nothing of them is cut
    assert "…" not in "".join(lines)


def test_a_narrow_terminal_leaves_out_the_columns_that_matter_least():
    parts = baselines_parts(published())
    narrow, piped = printed(parts, 80, terminal=True), printed(parts, 80)
    assert max(map(cell_len, narrow)) <= 80
    assert "tokens/s/p" in narrow[2]
    assert "dtype" not in narrow[2]
    assert "dtype, " in "".join(narrow[-3:])
    assert "dtype" in piped[2]
    assert "left out" not in piped[-2]


def test_a_device_shows_its_notes_and_every_peak():
    device = find_device("910b")
    facts, _, peaks = device_parts(device)
    assert [row[1] for row in facts.rows if row[0] == "note"] == list(device.notes)
    assert len(peaks.rows) == len(device.peaks)
    with speaking("zh"):
        assert [row[1] for row in device_parts(device)[0].rows if row[0] == "说明"] != list(device.notes)


def test_a_device_of_which_little_is_known_shows_no_empty_row():
    (facts, *_) = device_parts(find_device("Ascend910ProA"))
    assert all(value not in ("", "-") for _, value in facts.rows)


def test_models():
    (table,) = models_parts(all_models())
    assert [row[0] for row in table.rows] == [model.name for model in all_models()]
    texts = [part.text for part in model_parts(find_model("llama2-7b"))]
    assert texts[0].startswith("llama2-7b (")
    assert "  hidden_size = 4096" in texts
    assert texts[-1].startswith("  source: ")


@pytest.mark.parametrize("make", [lambda: hardware_document(all_devices()), lambda: models_document(all_models())])
def test_documents_do_not_depend_on_the_language(make):
    english = make()
    with speaking("zh"):
        assert make() == english


def test_no_change_is_neither_worse_nor_better():
    """Equal shares have a p, but +0.00 % has no direction."""
    equal, worse = (judge(JUDGED["skipped_share"], [1.0] * 4, [value] * 4, 0.03) for value in (1.0, 1.1))
    assert _p(equal) == "-"
    assert _p(worse).endswith(" worse")
