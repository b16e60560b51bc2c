"""What programs read is the same whatever the locale: JSON, the files of the gate, the history."""

import hashlib
import json

import polars as pl
import pytest
import regex
from helpers import run_logparse
from releases import write_run

from analysis.compare.gate_exports import OUTPUTS

pytestmark = pytest.mark.usefixtures("analysed_once")

LOCALES = ("C", "zh_CN.UTF-8")
HAN = regex.compile(r"\p{Han}")
BOTH = ("--metric", "steady_step_time_ms", "--metric", "tokens_per_second_per_device")
# A regression, too little data, sides that cannot be compared, and losses that cannot: from logs, which takes longer,
# and from the history ``all``.
SIDES = {
    "slow": ("release=good", "release=slow", "--history", "all"),
    "few": ("good", "few"),
    "apart": ("release=good", "release=apart", "--history", "all"),
    "lost": ("release=good", "release=lost", "--history", "all"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of logs; the history ``h`` of two of them, recorded in one language, and an odd one recorded in both."""
    folder = tmp_path_factory.mktemp("locales")
    runs = {
        "good": (1000.0, 3, {}),
        "slow": (1050.0, 3, {"overlap": True}),
        "few": (1000.0, 1, {}),
        "apart": (1000.0, 1, {"seq_length": 8192}),
        "lost": (1000.0, 2, {}),
    }
    for at, (name, (ms, count, settings)) in enumerate(runs.items()):
        (folder / name).mkdir()
        for number in range(count):
            log = write_run(folder / name / f"{name}{number}.log", 100 * at + number, ms, **settings)
            if name == "lost":
                log.write_text(regex.sub(r"lm loss: \S+", "lm loss: nan", log.read_text()))
    text = (folder / "few/few0.log").read_text().splitlines(keepends=True)
    (folder / "few/part.log").write_text("".join(line for line in text if "iteration       20/" not in line))
    recorded = {"h": ("good", "slow"), "all": ("good", "slow", "apart", "lost")}
    for history, release in ((history, release) for history, releases in recorded.items() for release in releases):
        logs = sorted(str(log) for log in (folder / release).iterdir())
        run_logparse("record", "--each", *logs, "--history", history, "--release", release, cwd=folder)
    return folder


def both(place, *arguments):
    """What a command prints in each locale."""
    return [run_logparse(*arguments, cwd=place, LANG=locale).stdout for locale in LOCALES]


OF_HISTORY = {
    "history list": ("history", "list", "--json"),
    "history show": ("history", "show", "{id}"),
    "trend": ("trend", "--json"),
    "compare": ("compare", "release=good", "release=slow", "--json"),
    "gate": ("gate", "--baseline", "release=good", "--candidate", "release=slow", "--json"),
    "record": ("record", "few/few0.log", "good/good0.log", "--release", "good", "--json", "--label", "a=b"),
}


@pytest.mark.parametrize("command", OF_HISTORY)
def test_documents_of_a_history(place, command):
    run_id = json.loads(both(place, "history", "list", "--json", "--history", "h")[0])["runs"][0]["run_id"]
    arguments = [part.format(id=run_id) for part in OF_HISTORY[command]]
    if command == "record":
        # Only recording a run again changes nothing.
        both(place, *arguments, "--history", "h")
    english, chinese = both(place, *arguments, "--history", "h")
    assert json.loads(english)
    assert chinese == english


@pytest.mark.parametrize("case", SIDES)
@pytest.mark.parametrize("command", ["compare", "gate"])
def test_documents_of_logs(place, command, case):
    old, new, *where = SIDES[case]
    sides = (old, new, *where) if command == "compare" else ("--baseline", old, "--candidate", new, *where)
    english, chinese = both(place, command, *sides, *BOTH, "--json")
    assert json.loads(english)
    assert chinese == english
    assert HAN.search(english) is None


def test_reasons_have_codes_beside_the_sentence(place):
    told = json.loads(both(place, "compare", "good", "few", "--json")[1])
    finding = told["metrics"]["steady_step_time_ms"]
    assert (finding["reason_code"], finding["reason"].partition(":")[0]) == (
        "declared_within",
        "step time, steady",
    )
    (left,) = told["left_out"]
    assert (left["reason_code"], left["reason"]) == ("same_job", "another record of the same job is counted")
    lost = json.loads(both(place, "compare", *SIDES["lost"], "--json")[1])
    assert lost["losses_reason_code"] == "no_common_step"
    assert lost["losses_reason"] == "no step has a finite loss on both sides"


@pytest.mark.parametrize("case", SIDES)
def test_files_of_the_gate(place, tmp_path, case):
    """Only the summary speaks the language of the reader."""
    old, new, *where = SIDES[case]
    for locale in LOCALES:
        sides = ("--baseline", old, "--candidate", new, *where)
        run_logparse("gate", *sides, *BOTH, "-o", str(tmp_path / locale), cwd=place, LANG=locale)
    english, chinese = ({path.name: path.read_text() for path in (tmp_path / at).glob("[!.]*")} for at in LOCALES)
    assert english.keys() == chinese.keys()
    assert [name for name in english if english[name] != chinese[name]] == ["summary.md"]
    assert HAN.search(chinese["summary.md"])
    if case == "slow":
        assert set(english) == {output.name for output in OUTPUTS}


def test_the_summary_of_a_job_speaks_the_language_of_its_readers(place, tmp_path):
    summary = tmp_path / "page.md"
    sides = ("--baseline", "good", "--candidate", "slow")
    run_logparse("gate", *sides, cwd=place, LANG="zh_CN.UTF-8", GITHUB_STEP_SUMMARY=str(summary))
    assert "结论：性能回退" in summary.read_text(encoding="utf-8")


def test_a_history_is_the_same_whoever_records(place, tmp_path):
    """Its files have the same names, which hold the hash of a row, and but for the time of recording the same bytes."""
    (tmp_path / "job.toml").write_text("kv_channels = 128\n")
    logs = [str(place / "good/good0.log"), str(place / "slow/slow0.log")]
    flags = ("--release", "r", "--config", "job.toml", "--world-size", "8", "--version-of", "cann=8", "--hw", "910b3")
    for locale in LOCALES:
        run_logparse("record", *logs, *flags, "--history", locale, cwd=tmp_path, LANG=locale)
    english, chinese = ({p.relative_to(tmp_path / at): p for p in (tmp_path / at).rglob("*.parquet")} for at in LOCALES)
    assert english.keys() == chinese.keys()
    assert len(english) == 2
    for name, path in english.items():
        frames = [pl.read_parquet(p, hive_partitioning=False) for p in (path, chinese[name])]
        if name.parts[0] == "summary":
            assert frames[0].drop("recorded_at").equals(frames[1].drop("recorded_at"))
        else:
            assert len({hashlib.sha256(p.read_bytes()).hexdigest() for p in (path, chinese[name])}) == 1
