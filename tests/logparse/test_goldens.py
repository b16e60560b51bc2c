"""Every folder fixtures/<format>/<case> is a test: its logs must become its steps.csv, context.json and coverage.json.

These hold what was read. What is computed for each row has one golden a column, with a line for each case: so a new
metric adds one file and changes none. The numbers in the logs are made up, so the last tests check some of them by
arithmetic written out.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fixture_runs import FIXTURES, name_of, run_of_fixture
from helpers import GOLDENS

from analysis.present.as_json import origin_text
from analysis.present.words import evidence_text
from analysis.run.tables import COMPUTED_COLUMNS
from logparse.context.run_context import Fact
from logparse.formats import all_formats
from logparse.schema import DECODED_COLUMNS, FLOAT, Column

CASES = sorted(p for p in FIXTURES.glob("*/*") if p.is_dir())
COLUMNS = GOLDENS / "columns"
# What the golden of a column of floats holds of each case; ``n`` counts the rows that have a value.
NUMBERS = ("n", "first", "median", "mean", "last")
HINT = "run pytest --update-goldens tests/logparse/test_goldens.py and read the difference like code"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_fixture(case: Path, update_goldens: bool) -> None:
    require_known_format(case.parent.name)
    goldens = make_goldens(case)
    check_invariants(run_of_fixture(case).steps, goldens["coverage.json"])
    for name, text in goldens.items():
        hold(case / name, text, update_goldens)


@pytest.mark.parametrize("column", COMPUTED_COLUMNS, ids=lambda c: c.name)
def test_computed_column(column: Column, update_goldens: bool) -> None:
    hold(COLUMNS / f"{column.name}.csv", column_golden(column, CASES), update_goldens)


def test_every_golden_of_a_column_has_its_column(update_goldens: bool) -> None:
    left = sorted(p for p in COLUMNS.iterdir() if p.stem not in {c.name for c in COMPUTED_COLUMNS})
    if update_goldens:
        for golden in left:
            golden.unlink()
    assert update_goldens or not left, f"no column is named as {[p.name for p in left]}; {HINT}"


def hold(golden: Path, text: str, update: bool) -> None:
    """Fail where ``golden`` is not ``text``; with ``update`` write it first."""
    if update:
        golden.write_text(text, encoding="utf-8", newline="\n")
    compare(golden, text)


def require_known_format(name: str) -> None:
    known = [f.name for f in all_formats()]
    if name not in known:
        pytest.fail(
            f"fixtures/{name} is named after no format (known: {', '.join(known)}); "
            f"add a file to logparse/formats whose FORMAT has name={name!r}, or rename the folder"
        )


def make_goldens(case: Path) -> dict[str, str]:
    """The text of each golden file of ``case`` as the code makes it now."""
    run = run_of_fixture(case)
    log = run.log
    assert log.format.name == case.parent.name, f"{case} is read as {log.format.name!r}; move it there"
    framework = {**asdict(run.framework), "evidence": evidence_text(run.framework)}
    coverage = {"format": log.format.name, "framework": framework, **asdict(log.coverage)}
    return {
        "steps.csv": decoded_golden(run.steps),
        "context.json": as_json({name: known(fact) for name, fact in run.context.facts.items()}),
        "coverage.json": as_json(coverage),
    }


def known(fact: Fact) -> dict[str, Any]:
    """A value and where it is from, as people read it."""
    return {"value": fact.value, "origin": origin_text(fact.origin)}


def check_invariants(steps: pl.DataFrame, coverage: str) -> None:
    """What holds for every golden, also for a new one that nobody has read yet."""
    time_breakdown = json.loads(coverage)
    assert time_breakdown["step_lines"] > 0, "no step line was found; a fixture without one tests nothing"
    assert time_breakdown["step_lines"] == len(steps), "every whole step line is one row"
    assert time_breakdown["framework"]["name"] is not None, (
        "nobody knows who printed this; name its framework in the format, or add a Dialect to context/dialects.py"
    )
    floats = [c for c in steps.columns if steps.schema[c] == pl.Float64]
    infinite = [c for c in floats if steps[c].is_infinite().any()]
    assert not infinite, f"infinity in {infinite}: a division by zero"
    computed = [c.name for c in COMPUTED_COLUMNS if c.name in floats and steps[c.name].is_nan().any()]
    assert not computed, f"NaN in {computed}: what cannot be computed is null; only the log may say NaN"


def compare(golden: Path, text: str) -> None:
    assert golden.exists(), f"{golden} is missing; {HINT}"
    expected = golden.read_text(encoding="utf-8")
    if expected == text:
        return
    if golden.suffix == ".csv":
        difference = "\n".join(cell_differences(expected, text)) or "the columns differ in order or number"
        pytest.fail(f"{golden}:\n{difference}\n{HINT}")
    assert json.loads(text) == json.loads(expected), f"{golden}; {HINT}"
    pytest.fail(f"{golden} differs in layout only; {HINT}")


def cell_differences(expected: str, text: str) -> Iterator[str]:
    """Cells that differ, the first twenty of them, and columns and rows that are new or gone."""
    before, now = rows_by_name(expected), rows_by_name(text)
    if len(before) != len(now):
        yield f"  {len(before)} rows in the golden, {len(now)} now"
    rows = ((name, before.get(name, {}), now.get(name, {})) for name in dict.fromkeys([*before, *now]))
    found = (
        f"  {name}, {column}: {old.get(column)!r} in the golden, {new.get(column)!r} now"
        for name, old, new in rows
        for column in dict.fromkeys([*old, *new])
        if old.get(column) != new.get(column)
    )
    yield from itertools.islice(found, 20)


def rows_by_name(text: str) -> dict[str, dict[str, str]]:
    """The rows of a CSV by their case, or by their number where they name none."""
    rows = csv.DictReader(io.StringIO(text))
    return {row.get("case") or f"row {number}": row for number, row in enumerate(rows, start=1)}


def decoded_golden(steps: pl.DataFrame) -> str:
    """Decoded columns with a value, in schema order; an empty cell is null, NaN is what the log printed as such."""
    columns = [c.name for c in DECODED_COLUMNS if steps[c.name].null_count() < len(steps)]
    return as_csv(columns, ([cell(value) for value in row] for row in steps.select(columns).iter_rows()))


def column_golden(column: Column, cases: Iterable[Path]) -> str:
    """One line for each of ``cases`` that has a value in ``column``: numbers of its floats, or all of its rows."""
    header, summarized = (NUMBERS, numbers_of) if column.dtype == FLOAT else (("rows",), all_rows)
    values = {case.relative_to(case.parents[1]).as_posix(): run_of_fixture(case).steps[column.name] for case in cases}
    lines = ([name, *summarized(of_case.to_list())] for name, of_case in values.items() if of_case.count())
    return as_csv(["case", *header], lines)


def numbers_of(values: Sequence[float | None]) -> list[str]:
    """NUMBERS of ``values``. The mean is summed without rounding, so that it is the same on each machine."""
    there = [value for value in values if value is not None]
    found = (len(there), there[0], statistics.median(there), statistics.fmean(there), there[-1])
    return [cell(number) for number in found]


def all_rows(values: Sequence[Any]) -> list[str]:
    """One cell with the value of each row; a hyphen is null, and ``value*3`` stands for three rows that have it."""
    runs = ((value or "-", len(list(same))) for value, same in itertools.groupby(map(cell, values)))
    return [" ".join(value if length == 1 else f"{value}*{length}" for value, length in runs)]


def as_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def cell(value: Any) -> str:
    """A value so that no digit is lost."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def as_json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def test_a_folder_of_an_unknown_format_fails_with_what_to_add() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"fixtures/megatrom .*\(known: .*megatron.*name='megatrom'"):
        require_known_format("megatrom")


@pytest.mark.parametrize(
    ("row", "coverage", "reason"),
    [
        ({"mfu": math.inf}, {}, "infinity"),
        ({"mfu": math.nan}, {}, "NaN in"),
        ({"loss": math.inf}, {}, "infinity"),
        ({}, {"step_lines": 0}, "no step line"),
        ({}, {"step_lines": 2}, "one row"),
        ({}, {"framework": {"name": None}}, "Dialect"),
    ],
)
def test_invariants_refuse_a_broken_golden(row: dict[str, float], coverage: dict[str, Any], reason: str) -> None:
    steps = pl.DataFrame({"loss": [2.5], "mfu": [0.4], **{name: [value] for name, value in row.items()}})
    time_breakdown = {"step_lines": 1, "framework": {"name": "Megatron-LM"}, **coverage}
    with pytest.raises(AssertionError, match=reason):
        check_invariants(steps, json.dumps(time_breakdown))


def test_a_printed_nan_is_no_broken_golden() -> None:
    steps = pl.DataFrame({"loss": [math.nan], "mfu": [0.4]})
    check_invariants(steps, json.dumps({"step_lines": 1, "framework": {"name": "Megatron-LM"}}))


def test_a_changed_digit_is_found_and_named(tmp_path: Path) -> None:
    golden = tmp_path / "steps.csv"
    golden.write_text("step,mfu\n1,0.4\n2,0.41\n")
    compare(golden, "step,mfu\n1,0.4\n2,0.41\n")
    with pytest.raises(pytest.fail.Exception, match=r"row 2, mfu: '0.41' in the golden, '0.41000000000000003' now"):
        compare(golden, "step,mfu\n1,0.4\n2,0.41000000000000003\n")


def test_a_case_that_is_new_or_gone_is_named() -> None:
    before, now = "case,n,mean\na/x,2,0.4\nc/x,2,0.5\n", "case,n,mean\nb/x,3,0.6\nc/x,2,0.7\n"
    found = list(cell_differences(before, now))
    assert "  a/x, n: '2' in the golden, None now" in found
    assert "  b/x, n: None in the golden, '3' now" in found
    assert [line for line in found if "c/x" in line] == ["  c/x, mean: '0.5' in the golden, '0.7' now"]


def test_a_column_is_held_by_few_numbers_or_by_all_rows() -> None:
    assert numbers_of([None, 4.0, 0.5, 1.5]) == ["3", "4.0", "1.5", "2.0", "1.5"]
    assert all_rows([None, None, "holds_save", None]) == ["-*2 holds_save -"]
    assert all_rows([False, True, True]) == ["false true*2"]


def copied_case(folder: Path) -> Path:
    """A case in ``folder`` that holds a log and no golden."""
    case = folder / "megatron" / "copy"
    case.mkdir(parents=True)
    (case / "run.log").write_bytes((FIXTURES / "megatron/core-v0.12-llama2-7b/run.log").read_bytes())
    return case


def test_update_goldens_writes_what_is_compared(tmp_path: Path) -> None:
    case = copied_case(tmp_path)
    with pytest.raises(AssertionError, match="is missing; run pytest --update-goldens"):
        test_fixture(case, False)
    test_fixture(case, True)
    test_fixture(case, False)
    assert sorted(p.name for p in case.iterdir()) == ["context.json", "coverage.json", "run.log", "steps.csv"]
    (case / "context.json").write_text("{}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"context.json; run pytest --update-goldens"):
        test_fixture(case, False)
    test_fixture(case, True)
    test_fixture(case, False)


def test_update_goldens_keeps_one_golden_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "COLUMNS", tmp_path / "columns")
    monkeypatch.setitem(globals(), "CASES", [copied_case(tmp_path)])
    (tmp_path / "columns").mkdir()
    for column in COMPUTED_COLUMNS:
        with pytest.raises(AssertionError, match=rf"{column.name}.csv is missing; run pytest --update-goldens"):
            test_computed_column(column, False)
        test_computed_column(column, True)
    test_every_golden_of_a_column_has_its_column(False)
    assert (COLUMNS / "copied.csv").read_text(encoding="utf-8") == "case,rows\nmegatron/copy,false*60\n"
    (COLUMNS / "speed.csv").touch()
    with pytest.raises(AssertionError, match=r"no column is named as \['speed.csv'\]; run pytest --update-goldens"):
        test_every_golden_of_a_column_has_its_column(False)
    test_every_golden_of_a_column_has_its_column(True)
    assert sorted(p.stem for p in COLUMNS.iterdir()) == sorted(c.name for c in COMPUTED_COLUMNS)


def row_of(case: str, step: int) -> dict[str, str]:
    """The row of ``step``, decoded and computed, each value as the goldens write it."""
    (row,) = run_of_fixture(FIXTURES / case).steps.filter(pl.col("step") == step).iter_rows(named=True)
    return {name: cell(value) for name, value in row.items()}


def golden_context(case: str) -> dict[str, Any]:
    facts = json.loads((FIXTURES / case / "context.json").read_text(encoding="utf-8"))
    return {name: fact["value"] for name, fact in facts.items()}


def test_by_hand_llama2_7b_without_recompute() -> None:
    """Step 2 took 5302.6 ms for 32 samples of 4096 tokens on 8 devices; nothing is recomputed."""
    row = row_of("megatron/core-v0.12-llama2-7b", 2)
    assert row["elapsed_time_per_iteration_ms"] == row["step_time_ms"] == "5302.6"
    # 32 / 5.3026 / 8 = 4 / 5.3026
    assert float(row["samples_per_second_per_device"]) == pytest.approx(0.754347, abs=5e-7)
    # 4 x 4096 / 5.3026 = 16384 / 5.3026
    assert float(row["tokens_per_second_per_device"]) == pytest.approx(3089.8050, abs=5e-5)
    # 24 x 3 x 32 x 4096^2 = 38 654 705 664 per token, times 1 + 1/6 + 32000/(16 x 32 x 4096) = 1.181925455729:
    # 45 686 980 608; times 3089.8050 tokens/s = 141.16386e12
    assert float(row["tflops_per_second_per_device"]) == pytest.approx(141.1639, abs=5e-4)
    # the bf16 peak of the 910B2 is 24 cores x 8192 x 1.8e9 = 353.8944e12: 141.1639 / 353.8944
    assert float(row["peak_utilization"]) == pytest.approx(0.39889, abs=5e-6)
    # the real model over the published 353.89: per token 6 x (32 x (5 x 4096^2 + 3 x 4096 x 11008) + 4096 x 32000) =
    # 42 863 689 728
    assert float(row["mfu"]) == float(row["hfu"]) == pytest.approx(42.863689728e9 * 3089.8050 / 353.89e12, rel=1e-6)
    # 8 devices = 4 data x 2 tensor; 32 samples = 4 data x 1 each x 8 micro-batches
    context = golden_context("megatron/core-v0.12-llama2-7b")
    assert (context["world_size"], context["data_parallel_size"], context["tensor_model_parallel_size"]) == (8, 4, 2)
    assert context["num_microbatches"] == 8


def test_by_hand_bigscience_seconds_and_full_recompute() -> None:
    """Step 18201 took 58.21 s for 512 samples of 2048 tokens on 64 devices; everything is recomputed."""
    row = row_of("megatron/bigscience-seconds", 18201)
    assert float(row["elapsed_time_per_iteration_ms"]) == pytest.approx(58210.0)
    # 18201 x 512 samples, and times 2048 tokens
    assert (row["consumed_samples"], row["consumed_tokens"]) == ("9318912", "19085131776")
    # 512 / 58.21 / 64 = 8 / 58.21, times 2048
    assert float(row["samples_per_second_per_device"]) == pytest.approx(0.1374334, abs=5e-8)
    assert float(row["tokens_per_second_per_device"]) == pytest.approx(281.4637, abs=5e-5)
    # 24 x 4 x 40 x 5120^2 = 100 663 296 000 per token, times 1 + 2048/30720 + 250880/(16 x 40 x 5120) = 1.143229167:
    # 115 081 216 000; times 281.4637 tokens/s = 32.3912e12, and the log itself prints 32.39
    assert float(row["tflops_per_second_per_device"]) == pytest.approx(32.3912, abs=5e-5)
    assert float(row["logged_tflops_per_second_per_device"]) == 32.39


def test_by_hand_second_row_of_core_016() -> None:
    """The first step took 61862.4 ms, the second 17952.8 ms; row 2 prints their mean, 39907.6 ms."""
    row = row_of("megatron/core-v0.16-row2", 2)
    assert row["elapsed_time_per_iteration_ms"] == "39907.6"
    # 2 x 39907.6 - 61862.4
    assert float(row["step_time_ms"]) == pytest.approx(17952.8)
    # 64 / 17.9528 / 8 samples, times 8192
    assert float(row["tokens_per_second_per_device"]) == pytest.approx(3650.4612, abs=5e-5)
    first, third = row_of("megatron/core-v0.16-row2", 1), row_of("megatron/core-v0.16-row2", 3)
    assert first["step_time_ms"] == first["elapsed_time_per_iteration_ms"] == "61862.4"
    assert third["step_time_ms"] == third["elapsed_time_per_iteration_ms"]


def test_by_hand_sink_of_four_steps() -> None:
    """The first line prints 318844.205 ms for a sink of 4 steps of 32 samples of 2048 tokens on 8 devices."""
    row = row_of("mindformers/family-a-sink", 4)
    assert row["elapsed_time_per_iteration_ms"] == "318844.205"
    # 318844.205 / 4
    assert float(row["step_time_ms"]) == pytest.approx(79711.05125)
    # 32 / 79.71105125 / 8 samples, times 2048
    assert float(row["tokens_per_second_per_device"]) == pytest.approx(102.7712, abs=5e-5)


def test_by_hand_mindformers_rate_is_the_printed_one() -> None:
    """Step 19 prints 14902 ms, cut from 14902.4, for 64 samples on 8 devices."""
    row = row_of("mindformers/family-b-llama2-7b", 19)
    assert row["elapsed_time_per_iteration_ms"] == "14902.0"
    # 64 / 8 / 14.902, and the log from the uncut time: 64 / 8 / 14.9024
    assert float(row["samples_per_second_per_device"]) == pytest.approx(0.5368407, abs=5e-8)
    assert row["logged_samples_per_second_per_device"] == "0.53683"


def test_by_hand_steps_go_on_in_the_second_epoch() -> None:
    """An epoch has 20 steps, so step 3 of epoch 2 is step 23; its update overflowed."""
    row = row_of("mindformers/family-b-1.5", 23)
    assert (row["epoch"], row["step_in_epoch"], row["steps_per_epoch"]) == ("2", "3", "20")
    assert (row["overflow"], row["grad_norm"], row["counted"]) == ("true", "NaN", "false")


def test_by_hand_mindspore_time_is_that_of_the_epoch() -> None:
    """Each epoch prints one time per step, which stands for its 12 steps."""
    rows = [row_of("mindspore/lossmonitor", step) for step in (13, 24)]
    assert rows[0]["step_time_ms"] == rows[1]["step_time_ms"] != row_of("mindspore/lossmonitor", 25)["step_time_ms"]


def test_by_hand_torchtitan_time_is_of_its_tokens_per_second() -> None:
    """32 x 8192 tokens on 16 devices are 16384 of one; the line of step 20 prints how many in a second, rounded."""
    row = row_of("torchtitan/llama3-8b-2d", 20)
    tps = float(row["logged_tokens_per_second_per_device"])
    assert float(row["step_time_ms"]) == pytest.approx(16384e3 / tps)
    assert float(row["tokens_per_second_per_device"]) == pytest.approx(tps)
    # half a token per second of so many
    assert float(row["time_resolution_ms"]) == pytest.approx(16384e3 / tps * 0.5 / tps)
    assert row_of("torchtitan/llama3-8b-2d", 110)["excluded_reason"] == "holds_save"
    context = golden_context("torchtitan/llama3-8b-2d")
    # 2/3 of 4 x 4096 is 10922, times 1.3 is 14198, rounded up to a multiple of 1024
    assert (context["ffn_hidden_size"], context["world_size"], context["data_parallel_size"]) == (14336, 16, 8)


def test_by_hand_deepspeed_time_is_between_two_stamps() -> None:
    """Steps 11 to 20 passed from 09:31:15.569 to 09:31:31.805."""
    assert float(row_of("deepspeed/engine-zero2", 20)["step_time_ms"]) == pytest.approx(1623.6)
    assert row_of("deepspeed/engine-zero2", 70)["excluded_reason"] == "holds_save"
    context = golden_context("deepspeed-pipeline/two-stages")
    # the last process is pipe=1, data=3
    assert (context["world_size"], context["pipeline_model_parallel_size"]) == (8, 2)


def test_messy_log_is_accounted_for() -> None:
    """18 step lines were printed: one is torn, one has a malformed loss, one is cut off behind the loss' label."""
    time_breakdown = json.loads((FIXTURES / "megatron/messy/coverage.json").read_text(encoding="utf-8"))
    assert time_breakdown["step_lines"] == 17
    assert time_breakdown["torn_lines"] == 1
    assert time_breakdown["malformed_values"] == 1
    assert time_breakdown["unread_labels"] == {"router temperature": 2}
    assert row_of("megatron/messy", 9)["loss"] == row_of("megatron/messy", 18)["loss"] == ""
    assert golden_context("megatron/messy")["world_size"] == 8
