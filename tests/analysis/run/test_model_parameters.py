"""The parameters that the log counts, beside those of its sizes."""

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line

from logparse import analyze

PRINTED = " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): {n}"
ONE = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1}


def found(tmp_path, n, **settings):
    lines = [arguments_dump(SETTINGS | ONE | settings).rstrip(), PRINTED.format(n=n)]
    lines += [megatron_line(step) for step in range(1, 21)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    run = analyze(tmp_path / "run.log")
    return [note.fields["apart"] for note in run.notes if note.code == "parameters_differ"]


def test_parameters_of_llama2_7b_are_those_of_its_sizes(tmp_path):
    assert found(tmp_path, 6738415616) == []


def test_a_model_with_more_parameters_than_its_sizes_give_is_doubted(tmp_path):
    # An output gate of the attention: 32 x 4096 x 4096.
    (apart,) = found(tmp_path, 6738415616 + 32 * 4096 * 4096)
    assert apart == pytest.approx(0.0797, abs=0.0001)


def test_the_parameters_of_a_part_of_the_model_are_not_compared(tmp_path):
    assert found(tmp_path, 3369207808, tensor_model_parallel_size=2) == []
