"""Old stores stay readable, in whichever language they were written.

``stores/v1-en`` and ``stores/v1-zh`` were recorded by the last logparse of version 1, ``stores/v2`` by the last one of
version 2: two runs of fixtures/releases, and fixtures/megatron/multi-node with a config file, a flag and a label.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from helpers import ROOT, run_logparse

from analysis.history.folder import DEAD_SECONDS, Folder
from analysis.history.migrations import migrate_runs, migrate_steps, read_origin
from analysis.history.run_records import RUN_COLUMNS, STORE_VERSION
from analysis.history.store import History
from analysis.history.summary_files import parquet_of
from analysis.run.rows import exclusion_reasons as reasons
from analysis.run.tables import STEP_COLUMNS
from logparse.errors import InputError
from logparse.findings import Origin
from logparse.schema import Column

STORES = Path(__file__).parent / "stores"
LANGUAGES = ("en", "zh")
OLD = ("v1-en", "v1-zh", "v2")
# Of the steps the work as executed stays as it was recorded, of all layers where only some are recomputed.
EXECUTED = ("tflops_per_second_per_device", "peak_utilization", "mfu", "hfu")
# What one recording tells otherwise than another.
INCIDENTAL = ("recorded_at", "logparse_version", "schema_version")

ORIGINS = {
    "log line 202": Origin("log", line=202),
    "日志第 202 行": Origin("log", line=202),
    "log line 5 of x.log": Origin("log", "x.log", 5),
    "x.log 第 5 行": Origin("log", "x.log", 5),
    "log line 17: recompute_granularity full": Origin("log", line=17, rule="recompute_granularity full"),
    "日志第 17 行：recompute_granularity full": Origin("log", line=17, rule="recompute_granularity full"),
    "log line 3 of a b.log: bf16 True": Origin("log", "a b.log", 3, "bf16 True"),
    "a b.log 第 3 行：bf16 True": Origin("log", "a b.log", 3, "bf16 True"),
    "every step line": Origin("step lines"),
    "每条训练步行": Origin("step lines"),
    "--world-size": Origin("flag", rule="--world-size"),
    "--version-of": Origin("flag", rule="--version-of"),
    "--model llama2-7b": Origin("model", rule="llama2-7b"),
    "config file my jobs/x.toml": Origin("config", "my jobs/x.toml"),
    "配置文件 x.toml": Origin("config", "x.toml"),
    "how the log looks": Origin("appearance"),
    "derived: moe_layer_freq": Origin("derived", rule="moe_layers_of_pattern"),
    "推算：隐藏维度 / 注意力头数": Origin("derived", rule="kv_channels_of_hidden_size"),
    "written by hand": Origin("text", rule="written by hand"),
}


@pytest.mark.parametrize("text", ORIGINS)
def test_origins_in_words(text):
    assert read_origin(text) == ORIGINS[text]


def test_reasons_in_words():
    """Every code of today has the text that version 1 kept for it; another text stays as it is."""
    codes = {code for name, code in vars(reasons).items() if name.isupper() and isinstance(code, str)}
    texts = ["warm-up", "NaN", "step done again after a restart", None, "unheard of"]
    found = migrate_steps(pl.DataFrame({"excluded_reason": texts}), 1)["excluded_reason"]
    assert found.to_list() == ["warm_up", "nan", "replayed", None, "unheard of"]
    assert set(found) - {None, "unheard of"} <= codes


@pytest.mark.parametrize("migrate", [migrate_runs, migrate_steps])
def test_a_version_of_the_future_is_refused(migrate):
    with pytest.raises(InputError, match="newer logparse"):
        migrate(pl.DataFrame(), STORE_VERSION + 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The old stores, and the same logs recorded now into ``now``."""
    folder = tmp_path_factory.mktemp("stores")
    (folder / "fixtures").symlink_to(ROOT / "fixtures")
    (folder / "job.toml").write_text("micro_batch_size = 1\n")
    nodes = sorted(str(log.relative_to(ROOT)) for log in (ROOT / "fixtures/megatron/multi-node").glob("node*.log"))
    known = ("--hw", "910b3", "--release")
    records = [
        ["fixtures/releases/8.0.RC1-1.log", *known, "CANN 8.0.RC1"],
        ["fixtures/releases/8.0.RC2-1.log", *known, "CANN 8.0.RC2", "--version-of", "driver=24.1"],
        [*nodes, "--release", "nodes", "--config", "job.toml", "--kv-channels", "128", "--label", "team=a"],
    ]
    for arguments in records:
        assert run_logparse("record", *arguments, "--history", "now", cwd=folder).returncode == 0
    for store in OLD:
        shutil.copytree(STORES / store, folder / store)
    return folder


def kept_since(columns: Iterable[Column], part: str) -> tuple[str, ...]:
    """Columns that files of version 1 have not, and so null in old runs."""
    schemas = [pl.read_parquet_schema(path) for path in (STORES / "v1-en" / part).rglob("*.parquet")]
    return tuple(column.name for column in columns if not any(column.name in schema for schema in schemas))


SINCE = kept_since(RUN_COLUMNS, "summary")
STEPS_SINCE = kept_since(STEP_COLUMNS, "steps")
# Since version 1 all-in begins at the first stamp of the log, and useful steps count for what they took.
DEFINED_ANEW = (
    "goodput",
    *("wall_clock_step_time_ms", "wall_clock_step_time_low_ms", "wall_clock_step_time_high_ms"),
)
# Totals of endings, which history keeps only now.
TOTALS = "device_hours_by_ending"
NOT_COMPARED = (*INCIDENTAL, *SINCE, *DEFINED_ANEW)
# An old run's resamples were summed row by row, which the last digits of an interval tell.
INTERVALS, DIGITS = pl.col("^.*_(low|high)_ms$"), 12


def kept(history: History) -> pl.DataFrame:
    return comparable(history.runs(heavy=True)).sort("run_id")


def recorded(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.drop(STEPS_SINCE, *EXECUTED, strict=False)


def comparable(runs: pl.DataFrame) -> pl.DataFrame:
    """Without what is kept since version 1, and without the origins of that."""
    kept_then = runs.drop(NOT_COMPARED)
    executed = [name for name in ("flops_per_iteration", *EXECUTED) if name in kept_then.columns]
    told = kept_then.with_columns(INTERVALS.round_sig_figs(DIGITS), pl.col(executed).round_sig_figs(DIGITS))
    if "origins" not in told.columns:
        return told
    of_then = ~pl.element().struct.field("name").is_in(list(SINCE))
    return told.with_columns(pl.col("origins").list.eval(pl.element().filter(of_then)))


@pytest.mark.parametrize("store", OLD)
def test_old_runs_are_what_the_same_logs_are_now(place, store):
    """Origins too: whichever language they were written in, none is left in words."""
    old, now = History(Folder(place / store)), History(Folder(place / "now"))
    assert kept(old).equals(kept(now))
    assert old.runs()["run_id"].to_list() == now.runs()["run_id"].to_list()
    for run_id in now.runs()["run_id"]:
        assert recorded(old.steps(run_id)).equals(recorded(now.steps(run_id)))
        assert comparable(old.settings([run_id])).equals(comparable(now.settings([run_id])))


@pytest.mark.parametrize("metric", ["mfu", "hfu", "peak_utilization"])
@pytest.mark.parametrize("store", OLD)
def test_shares_of_the_peak_of_old_runs_follow_from_what_they_kept(place, store, metric):
    old, now = (History(Folder(place / name)).runs().sort("run_id") for name in (store, "now"))
    assert old[metric].null_count() == now[metric].null_count() < len(now)
    assert old[metric].drop_nulls().to_list() == pytest.approx(now[metric].drop_nulls().to_list(), rel=1e-9)


@pytest.mark.parametrize("rate", ["with_stalls", "wall_clock"])
def test_renamed_rates_of_the_last_version_are_kept(place, rate):
    old, now = (History(Folder(place / name)).runs().sort("run_id") for name in ("v2", "now"))
    assert old[f"{rate}_step_time_ms"].to_list() == now[f"{rate}_step_time_ms"].to_list()
    assert old[f"{rate}_steps"].null_count() == 0


def test_a_part_of_the_layers_that_counted_as_all_counts_as_a_part(place):
    # node0 recomputes 4 layers of each of 2 stages, 8 of 40 layers: 3.2 of 4.
    old, now = (History(Folder(place / store)).runs() for store in ("v1-en", "now"))
    of_old, of_now = (runs.filter(pl.col("name") == "node0")["flops_per_iteration"].item() for runs in (old, now))
    assert of_old == pytest.approx(of_now, rel=1e-12)
    written = pl.read_parquet(list((STORES / "v1-en").rglob("summary/**/*.parquet")), columns=["flops_per_iteration"])
    assert any(of_now / value == pytest.approx(3.2 / 4) for value in written["flops_per_iteration"])


COMMANDS = {
    "gate": ("gate", "--baseline", "release=CANN 8.0.RC1", "--candidate", "release=CANN 8.0.RC2", "--json"),
    "compare": ("compare", "release=CANN 8.0.RC1", "release=CANN 8.0.RC2", "--json"),
    "list": ("history", "list", "release=nodes", "--json"),
    "show": ("history", "show", "e7e2"),
    "trend": ("trend", "--json"),
}


def document(place: Path, store: str, command: str) -> dict[str, object]:
    done = run_logparse(*COMMANDS[command], "--history", store, cwd=place)
    assert done.stderr == ""
    return json.loads(done.stdout, object_hook=compared, parse_float=lambda text: float(f"{float(text):.{DIGITS}g}"))


def compared(fields: dict[str, object]) -> dict[str, object]:
    if {fields.get("name"), fields.get("metric")} & {*SINCE, *DEFINED_ANEW}:
        return {}
    return {name: value for name, value in fields.items() if name not in (*NOT_COMPARED, TOTALS)}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_the_same_of_an_old_store(place, command):
    now = document(place, "now", command)
    assert [document(place, store, command) == now for store in OLD] == [True] * len(OLD)


@pytest.mark.parametrize("language", LANGUAGES)
def test_old_files_stay_when_all_is_compacted(place, tmp_path, language):
    shutil.copytree(STORES / f"v1-{language}", tmp_path / "h")
    history = History(Folder(tmp_path / "h"))
    before, files = kept(history), sorted((tmp_path / "h").rglob("*.parquet"))
    for _ in range(2):
        history.compact()
        for path in (tmp_path / "h").rglob("*.parquet"):
            os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)
    assert {path.suffixes[-2] for path in (tmp_path / "h/bundles").iterdir()} == {f".v{STORE_VERSION}"}
    for path in (tmp_path / "h/summary").rglob("*.parquet"):
        path.write_bytes(b"")
    assert kept(history).equals(before)
    assert sorted((tmp_path / "h").rglob("*.v1.parquet")) == files


def test_lost_steps_of_an_old_run_are_kept_again_beside_it(place, tmp_path):
    """What is left of the old file does not hide the new one."""
    shutil.copytree(STORES / "v1-zh", tmp_path / "h")
    old = next((tmp_path / "h/steps").rglob("*.parquet"))
    run_id = old.name.partition(".")[0]
    old.write_bytes(b"PAR1")
    history = History(Folder(tmp_path / "h"))
    with pytest.raises(InputError, match="is damaged"):
        history.steps(run_id)
    now = History(Folder(place / "now"))
    history.storage.put(
        old.relative_to(tmp_path / "h").as_posix().replace(".v1.", f".v{STORE_VERSION}."), parquet_of(now.steps(run_id))
    )
    assert history.steps(run_id).equals(now.steps(run_id))


def test_many_old_files_are_one_scan(place, monkeypatch):
    """A file of its own for each of thousands of old runs would take minutes."""
    history = History(Folder(place / "v1-en"))
    scanned = []
    scan = pl.scan_parquet
    monkeypatch.setattr(pl, "scan_parquet", lambda files, **how: scanned.append(len(files)) or scan(files, **how))
    history.runs()
    assert scanned == [3]


def test_a_store_that_the_last_logparse_compacted_reads_the_same(tmp_path):
    """``stores/v3``: two months in bundles, one run removed from one, a copy in ``compacted``, two files, four notes.

    ``v3-runs.parquet`` has the runs as that logparse read them. It recorded six logs of fixtures/releases on
    2026-11-29, the last before bundles were written by recording.
    """
    shutil.copytree(STORES / "v3", tmp_path / "h")
    history = History(Folder(tmp_path / "h"))
    expected = pl.read_parquet(STORES / "v3-runs.parquet")
    for step in ("as it was", "compacted", "compacted a day later", "compacted two days later"):
        runs = history.runs(heavy=True)
        assert runs.select(expected.columns).equals(expected), step
        assert runs.drop(expected.columns).null_count().row(0) == (len(runs),) * (runs.width - expected.width)
        assert [len(history.steps(run_id)) for run_id in runs["run_id"]] == [20] * 5
        history.compact()
        for path in (tmp_path / "h").rglob("*.parquet"):
            os.utime(path, (time.time() - 2 * DEAD_SECONDS,) * 2)
    assert [len(history.storage.keys(table)) for table in ("summary", "compacted", "bundles", "events")] == [0, 0, 3, 4]
