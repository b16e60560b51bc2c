"""With ``--max_steps`` Hugging Face prints the largest integer as the number of epochs: it is none."""

import pytest

from analysis.api import analyze

LOG = (
    "***** Running training *****\n  Num examples = 2,400\n  Num Epochs = {epochs}\n"
    "  Total train batch size (w. parallel, distributed & accumulation) = 24\n  Total optimization steps = 300\n"
    "{{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.1}}\n{{'loss': 2.4, 'learning_rate': 1e-05, 'epoch': 0.2}}\n"
)


@pytest.mark.parametrize(
    ("epochs", "read"), [("9,223,372,036,854,775,807", None), ("9223372036854775807", None), ("1,200", 1200), ("3", 3)]
)
def test_the_largest_integer_is_no_number_of_epochs(tmp_path, epochs, read):
    (tmp_path / "run.log").write_text(LOG.format(epochs=epochs))
    run = analyze(str(tmp_path / "run.log"))
    assert "value_malformed" not in {note.code for note in run.notes}
    assert run.steps["epochs"].unique().to_list() == [read]
