"""A model whose shape contradicts the log does not replace what the log prints."""

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from analysis.api import analyze

LOG = arguments_dump(SETTINGS) + "".join(megatron_line(step, 1000.0) + "\n" for step in range(1, 31))


def analysed(folder, **given):
    (folder / "run.log").write_text(LOG)
    return analyze(str(folder / "run.log"), hw="910b3", **given)


def about_model(run):
    return [note for note in run.notes if note.code == "model_contradicts_log"]


def test_a_model_of_another_shape_changes_no_figure_and_is_the_first_warning(tmp_path):
    plain, other = analysed(tmp_path), analysed(tmp_path, model="gpt3-175b")
    assert other.analysis.rates.equals(plain.analysis.rates)
    assert plain.analysis.value("mfu") is not None
    (note,) = about_model(other)
    assert note.level == "warning"
    assert {name: note.fields[name] for name in ("model", "name", "value", "printed")} == {
        "model": "gpt3-175b",
        "name": "num_layers",
        "value": 96,
        "printed": 32,
    }
    assert "num_layers" not in [n.fields.get("name") for n in other.notes if n.code == "setting_overridden"]


@pytest.mark.parametrize(
    "given", [{"model": "llama2-7b"}, {"model": "llama2-13b", "num_layers": 40, "hidden_size": 5120}]
)
def test_a_model_that_fits_or_whose_sizes_are_flags_too_is_used(tmp_path, given):
    shown = about_model(analysed(tmp_path, **given))
    assert bool(shown) == (given["model"] == "llama2-13b")
    assert [note.fields["name"] for note in shown] == ["num_attention_heads"] * len(shown)
