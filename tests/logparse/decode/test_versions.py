"""Software versions as programs print them."""

import polars as pl
import pytest
from helpers import megatron_log

from logparse.decode.read_run import read_run
from logparse.decode.versions import MARKERS, SPELLINGS, first_matches
from logparse.findings import Origin

EXPECTED = {
    "cann": {"8.0.RC2.alpha002", "8.0.RC2", "8.0.RC2.alpha001"},
    "torch": {"2.0.1", "2.11.0a0+eb65b03.nv26.2"},
    "torch_npu": {"2.2.0"},
    "cuda": {"11.8"},
    "nccl": {"2.25.1+cuda12.8", "2.7.8"},
    "mindspore": {"2.3.1"},
    "mindformers": {"1.2.0"},
    "driver": {"24.1.rc2", "535.183.01", "23.0.rc2"},
    "deepspeed": {"0.10.0+f5c834a6e", "0.14.0"},
    "megatron_commit": {"6629a33"},
}


def lines(*texts: str) -> pl.DataFrame:
    return pl.DataFrame({"source": "a.log", "line_number": range(1, len(texts) + 1), "text": texts})


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda s: f"{s.name}: {s.marker}")
def test_samples(spelling):
    found = first_matches(lines("noise", spelling.sample), SPELLINGS)
    assert found[spelling.name].value in EXPECTED[spelling.name]
    assert found[spelling.name].origin(several=False) == Origin("log", line=2)
    assert spelling.marker in spelling.sample


def test_every_name_is_tested():
    assert {spelling.name for spelling in SPELLINGS} == set(EXPECTED)


@pytest.mark.parametrize(
    "text",
    [
        "**** Git info for Megatron: git_hash=unknown git_branch=unknown ****",
        "sparse_attn requires a torch version >= 1.5 and < 2.0 but detected 2.10",
        "torch hip version ................ None",
        "when ENABLE_CELL_REUSE is 0 or MindSpore version is earlier than 2.1.0 or stand_alone mode",
        "Warning: Driver Version: ",
        "deepspeed wheel compiled w. ...... torch 2.0, cuda 12.2",
    ],
)
def test_lines_that_tell_no_version(text):
    assert first_matches(lines(text), SPELLINGS) == {}


def test_the_first_that_knows_one_counts():
    unknown = "**** Git info for Megatron: git_hash=unknown git_branch=unknown ****"
    known = "**** Git info for Megatron: git_hash=6629a33 git_branch=main ****"
    found = first_matches(lines(unknown, known, known.replace("6", "7")), SPELLINGS)
    assert found["megatron_commit"].line_number == 2


def test_versions_are_read_with_the_log(tmp_path):
    (tmp_path / "a.log").write_text("noise\nCANN version: 8.0.RC1\n" + megatron_log())
    (tmp_path / "b.log").write_text("NCCL version 2.7.8+cuda10.2\n")
    found = read_run([str(tmp_path / "a.log"), str(tmp_path / "b.log")]).versions
    assert {name: version.value for name, version in found.items()} == {"cann": "8.0.RC1", "nccl": "2.7.8+cuda10.2"}
    assert found["nccl"].origin(several=True) == Origin("log", str(tmp_path / "b.log"), 1)
    assert len(MARKERS) == len(set(MARKERS))
