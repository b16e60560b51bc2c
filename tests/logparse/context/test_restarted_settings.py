"""Settings that a later start prints anew, and the user's values against what the lines print, by the command."""

import json

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse

from logparse.context.restarted_settings import list_printings
from logparse.schema import SETTING_COLUMNS

PEAK = ("--peak-tflops", "400")


def start(first: int, last: int, **changed: object) -> str:
    """What one process prints: its settings, unless there are none in ``changed``, and its steps of 10 s."""
    lines = [megatron_line(step, 10_000.0) for step in range(first, last + 1)]
    return "\n".join([arguments_dump(SETTINGS | changed), *lines, ""])


def analyzed(tmp_path, text: str, *options: str):
    """The JSON document of a log and its steps."""
    (tmp_path / "run.log").write_text(text)
    done = run_logparse("analyze", "run.log", "--json", "-o", "out", "--no-charts", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["runs"][0], pl.read_parquet(tmp_path / "out" / "steps.parquet")


# Codes of what is told where settings contradict each other.
ABOUT_SETTINGS = ("setting_changed_at_restart", "setting_has_two_values", "setting_overridden")


def coded(run, *codes: str) -> list[dict]:
    """Notes of a JSON document that have one of ``codes``."""
    return [note for note in run["notes"] if note["code"] in codes]


def by_start(steps: pl.DataFrame, column: str) -> list[float]:
    """The value of each start's last row."""
    return steps.group_by("segment", maintain_order=True).agg(pl.col(column).last())[column].to_list()


def test_recompute_that_a_restart_switches_off_counts_from_there_on(tmp_path):
    text = start(1, 20) + start(21, 40, recompute_granularity=None)
    run, steps = analyzed(tmp_path, text, *PEAK)
    full, none = by_start(steps, "tflops_per_second_per_device")
    assert full == pytest.approx(none * 4 / 3)
    # Every layer runs its forward pass again, the logits do not: 56.889 of 42.864 GFLOP per token.
    executed, model = by_start(steps, "hfu")
    assert executed == pytest.approx(model * 56.889 / 42.864, rel=1e-4)
    (note,) = coded(run, "setting_changed_at_restart")
    told = note["fields"]
    assert (note["level"], told["name"], told["before"], told["after"]) == ("warning", "recompute", "full", "none")
    before, after = (told[origin]["line"] for origin in ("origin_before", "origin_after"))
    assert before < after
    setting = "recompute_granularity"
    assert note["text"] == (
        f"recompute changes from full (log line {before}: {setting} full) to none (log line {after}: {setting} None) "
        "at a restart; each start uses its own"
    )


def test_devices_that_a_restart_adds_count_from_there_on(tmp_path):
    text = start(1, 20) + start(21, 40, world_size=16, data_parallel_size=8)
    run, steps = analyzed(tmp_path, text)
    eight, sixteen = by_start(steps, "tokens_per_second_per_device")
    assert eight == pytest.approx(32 * 4096 / 10 / 8)
    assert sixteen == pytest.approx(eight / 2)
    assert run["context"]["world_size"]["value"] == 8


def test_the_users_value_holds_for_all_starts(tmp_path):
    text = start(1, 20) + start(21, 40, world_size=16, data_parallel_size=8)
    _, steps = analyzed(tmp_path, text, "--world-size", "16", "--data-parallel-size", "8")
    assert by_start(steps, "tokens_per_second_per_device") == pytest.approx([32 * 4096 / 10 / 16] * 2)


def test_a_later_file_has_its_own_settings(tmp_path):
    (tmp_path / "1.log").write_text(start(1, 20))
    (tmp_path / "2.log").write_text(start(21, 40, recompute_granularity=None))
    done = run_logparse("analyze", "1.log", "2.log", "-v", "-o", "out", "--no-charts", cwd=tmp_path)
    assert "recompute changes from full" in " ".join(done.stdout.split())
    full, none = by_start(pl.read_parquet(tmp_path / "out" / "steps.parquet"), "tflops_per_second_per_device")
    assert full == pytest.approx(none * 4 / 3)


def test_of_starts_that_failed_before_a_step_the_last_one_counts(tmp_path):
    run, _ = analyzed(tmp_path, arguments_dump(SETTINGS | {"seq_length": 8192}) + "\n" + start(1, 20))
    assert run["context"]["seq_length"]["value"] == 4096
    assert coded(run, *ABOUT_SETTINGS) == []


def test_equal_settings_of_a_restart_are_not_mentioned(tmp_path):
    run, _ = analyzed(tmp_path, start(1, 20) + start(21, 40))
    assert coded(run, *ABOUT_SETTINGS) == []


def test_the_formula_is_found_on_the_rows_whose_settings_it_is_given(tmp_path):
    def logged(text: str, tflops: float) -> str:
        return text.replace("| lm loss", f"| TFLOPs: {tflops:.2f} | lm loss")

    _, steps = analyzed(tmp_path, start(1, 40))
    full = steps["tflops_per_second_per_device"].last()
    # After the restart the log prints three quarters of it, as the framework knows that nothing is recomputed.
    text = logged(start(1, 20), full) + logged(start(21, 60, recompute_granularity=None), full * 0.75)
    (tmp_path / "second").mkdir()
    run, _ = analyzed(tmp_path / "second", text)
    assert [n for n in run["notes"] if f"the log's {full:.4g}" in n["text"] and "AscendSpeed" in n["text"]]


@pytest.mark.parametrize(
    ("flag", "column"), [("--global-batch-size", "global_batch_size"), ("--seq-length", "seq_length")]
)
def test_a_flag_beats_what_the_lines_print(tmp_path, flag, column):
    text = start(1, 20).replace("| lm loss", "| actual seqlen: 4096 | lm loss")
    run, steps = analyzed(tmp_path, text, flag, "64")
    assert steps[column].unique().to_list() == [64]
    printed = {"global_batch_size": 32, "seq_length": 4096}[column]
    (note,) = (n for n in coded(run, "lines_overruled") if n["fields"]["name"] == column)
    assert (note["level"], note["fields"]["value"], note["fields"]["printed"]) == ("warning", 64, [printed, printed])
    assert note["text"] == f"{column} 64 ({flag}) is used, but the step lines print {printed}"
    tokens = {"global_batch_size": 64 * 4096, "seq_length": 32 * 64}[column]
    assert steps["tokens_per_second_per_device"].last() == pytest.approx(tokens / 10 / 8)


def test_a_flag_against_a_growing_batch_names_its_ends(tmp_path):
    text = start(1, 20).replace("global batch size:    32", "global batch size:    16", 5)
    run, _ = analyzed(tmp_path, text, "--global-batch-size", "32")
    (note,) = coded(run, "lines_overruled")
    assert note["fields"]["printed"] == [16, 32]
    assert note["text"] == "global_batch_size 32 (--global-batch-size) is used, but the step lines print 16 to 32"


def settings(*rows: tuple[str, str, str, str, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in SETTING_COLUMNS}, orient="row")


def places(*rows: tuple[str, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"source": pl.String, "line_number": pl.Int64}, orient="row")


def test_a_kind_printed_again_replaces_all_of_its_kind_and_no_other():
    printed = settings(
        ("a", "1", "arguments", "x", 1), ("b", "1", "arguments", "x", 2), ("w", "8", "world", "x", 3),
        ("a", "2", "arguments", "x", 11),
    )  # fmt: skip
    first, second = list_printings(printed, places(("x", 5), ("x", 15)))
    assert {key: row["value"] for key, row in first.rows.items()} == {
        "arguments:a": "1",
        "arguments:b": "1",
        "world:w": "8",
    }
    assert {key: row["value"] for key, row in second.rows.items()} == {"arguments:a": "2", "world:w": "8"}
    assert (first.line_number, second.line_number) == (5, 15)


def test_a_file_without_step_lines_comes_first_and_its_first_printing_counts():
    printed = settings(
        ("a", "1", "arguments", "y", 1), ("a", "2", "arguments", "y", 9), ("a", "3", "arguments", "x", 1)
    )
    first, second = list_printings(printed, places(("x", 5)))
    assert (first.source, first.line_number, first.rows["arguments:a"]["value"]) == ("y", None, "1")
    assert (second.source, second.line_number) == ("x", 5)


def test_what_is_printed_after_the_last_step_line_is_for_none():
    printed = settings(("a", "1", "arguments", "x", 1), ("a", "2", "arguments", "x", 9))
    (only,) = list_printings(printed, places(("x", 5)))
    assert only.rows["arguments:a"]["value"] == "1"


MOE = {"num_experts": 8, "moe_router_topk": 2}


@pytest.mark.parametrize(("before", "after"), [({}, MOE), (MOE, {"num_experts": None, "moe_router_topk": None})])
def test_experts_that_a_restart_brings_or_takes_away(tmp_path, before, after):
    text = start(1, 20, **before) + start(21, 40, **after)
    run, steps = analyzed(tmp_path, text, "--formula", "megatron", *PEAK)
    (tmp_path / "alone").mkdir()
    _, alone = analyzed(tmp_path / "alone", start(1, 20, **after), "--formula", "megatron", *PEAK)
    assert by_start(steps, "mfu")[1] == pytest.approx(alone["mfu"].last())
    assert by_start(steps, "mfu")[0] != pytest.approx(alone["mfu"].last())
    changed = {n["fields"]["name"]: n["fields"] for n in coded(run, "setting_changed_at_restart")}
    sides = [changed["num_experts"][origin]["kind"] for origin in ("origin_before", "origin_after")]
    assert sides == (["log", "not set"] if before else ["not set", "log"])
    assert (changed["num_experts"]["before"], changed["num_experts"]["after"]) == ((8, None) if before else (None, 8))


def test_a_flag_against_a_later_start_is_told_once(tmp_path):
    other = {"world_size": 4, "data_parallel_size": 2}
    text = start(1, 20) + start(21, 40, **other) + start(41, 60, **other)
    run, _ = analyzed(tmp_path, text, "--world-size", "8")
    (note,) = (n for n in coded(run, "setting_overridden") if n["fields"]["name"] == "world_size")
    assert note["text"].startswith("world_size 8 (--world-size) overrides 4 (log line ")


def test_settings_of_files_without_steps_that_differ_are_told(tmp_path):
    (tmp_path / "r0.log").write_text(arguments_dump(SETTINGS) + "\n")
    (tmp_path / "s0.log").write_text(arguments_dump(SETTINGS | {"world_size": 16, "data_parallel_size": 8}) + "\n")
    (tmp_path / "r7.log").write_text("".join(megatron_line(step, 10_000.0) + "\n" for step in range(1, 21)))
    done = run_logparse("analyze", "r0.log", "s0.log", "r7.log", "--json", cwd=tmp_path)
    told = {n["fields"]["name"]: n for n in coded(json.loads(done.stdout)["runs"][0], "setting_has_two_values")}
    world = told["world_size"]
    assert (world["fields"]["first"], world["fields"]["other"]) == ("8", "16")
    text = "world_size is 8 (log line 21 of r0.log) and 16 (log line 21 of s0.log); the first is used for the whole run"
    assert world["text"] == text


def test_what_follows_from_changed_settings_is_not_told_again(tmp_path):
    run, _ = analyzed(tmp_path, start(1, 20) + start(21, 40, data_parallel_size=2, world_size=4))
    told = {note["fields"]["name"] for note in coded(run, *ABOUT_SETTINGS)}
    assert {"world_size", "data_parallel_size"} <= told
    assert "num_microbatches" not in told


def test_a_second_file_that_begins_again_may_be_another_run(tmp_path):
    for day in (1, 2):
        lines = [
            megatron_line(step, 9_500.0 + 500.0 * day, f"2026-03-0{day} 08:0{step // 6}:{step % 6}0")
            for step in range(1, 21)
        ]
        (tmp_path / f"{day}.log").write_text("\n".join([arguments_dump(SETTINGS | {"seed": day}), *lines, ""]))
    done = run_logparse("analyze", "1.log", "2.log", "--json", cwd=tmp_path)
    (note,) = coded(json.loads(done.stdout)["runs"][0], "training_begun_again")
    assert (note["level"], note["fields"]) == ("warning", {"source": "2.log", "step": 1})
    assert note["text"] == "2.log starts the training again at step 1; for another run, analyze it alone"


def test_without_time_stamps_there_is_no_all_in_and_it_is_said(tmp_path):
    run, _ = analyzed(tmp_path, start(1, 20))
    assert run["rates"]["wall_clock"]["step_time_ms"] is None
    assert [note["level"] for note in coded(run, "wall_clock_not_computed")] == ["info"]
