"""Damaged logs of all formats are answered as promised: 50 of those that benchmarks/mutated_logs.py reads."""

import pytest
from mutated_logs import answer_of, case_of, hold_all, unknown_has_a_reason


@pytest.mark.slow
def test_damaged_logs_are_answered_as_promised():
    tally = hold_all(range(50))
    assert tally.faults == {}
    assert tally.outcomes["answered"] > 25


def test_the_number_decides_what_is_damaged():
    assert case_of(7) == case_of(7)
    assert len({case_of(n).data for n in range(20)}) == 20


SIZES = {"world_size": 8, "seq_length": 4096, "num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
SETTINGS = SIZES | {"ffn_hidden_size": 11008, "padded_vocab_size": 32000, "swiglu": True, "bf16": True}
ROW = (
    " iteration {:8}/ 100 | consumed samples: {} | elapsed time per iteration (ms): 51{}.0 | "
    "learning rate: 1.0E-04 |{} lm loss: 4.0E+00 | grad norm: 1.0 |\n"
)


def start(rows, missing, batch=" global batch size: 64 |", **more):
    """A start that prints its settings, those ``missing`` as not set, then ``rows``."""
    values = {name: None if name in missing else value for name, value in (SETTINGS | more).items()}
    printed = "".join(f"  {name} {'.' * 40} {value}\n" for name, value in values.items())
    steps = "".join(ROW.format(step, 64 * step, step % 10, batch) for step in rows)
    return f"{'-' * 24} arguments {'-' * 24}\n{printed}{'-' * 20} end of arguments {'-' * 20}\n{steps}"


@pytest.mark.parametrize(
    ("later", "hw"),
    [
        *(({name}, "h100") for name in ("world_size", "seq_length", "num_layers")),
        ({"num_layers"}, None),
        *((later, "h100") for later in ({"ffn_hidden_size", "swiglu"}, {"batch"}, {"preferences"})),
    ],
)
def test_a_figure_that_settings_of_a_later_start_leave_unknown_has_a_reason(tmp_path, monkeypatch, later, hw):
    """The only row of the first start is no row of the metrics: its settings say nothing of them."""
    monkeypatch.chdir(tmp_path)
    batch = {"batch": ""} if "batch" in later else {}
    more = {"use_dpo": True} if "preferences" in later else {}
    text = start([1], ()).replace("(ms): 511.0", "(ms): 9110.0") + start(range(2, 14), later, **batch, **more)
    (tmp_path / "run.log").write_text(text)
    answer, _ = answer_of(["run.log"], {"hw": hw})
    assert [fault for run in answer["runs"] for fault in unknown_has_a_reason(run)] == []
    assert answer["runs"][0]["metrics"]["mfu"] is None
