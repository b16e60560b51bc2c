"""Options of the whole suite."""

import gc
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cores
import hypothesis
import pytest

# No test is timed: a busy machine must not fail one. `make test` and `make audit` draw the same cases each time,
# `make explore` others.
_UNTIMED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("same", _UNTIMED, max_examples=20, derandomize=True, database=None)
hypothesis.settings.register_profile("audit", hypothesis.settings.get_profile("same"), max_examples=500)
hypothesis.settings.register_profile("explore", _UNTIMED, max_examples=20_000, print_blob=True)
hypothesis.settings.load_profile("same")

# Messages are compared in English, whatever the machine speaks.
for _name in ("LC_ALL", "LC_MESSAGES"):
    os.environ.pop(_name, None)
os.environ["LANG"] = "C.UTF-8"
# Workers fill the cores: threads of polars that wait beside them for work take a fifth of the time. Processes that
# tests start have as many as anyone's.
os.environ["POLARS_MAX_THREADS"] = "1"
cores.stay_on_one()

# The files that take longest begin first, so that no worker ends long after the others.
LONGEST = (
    *("test_packaging.py", "test_nightly_docs.py", "test_report_browser.py", "test_engine.py"),
    *("test_comparison_page.py", "test_gate.py"),
    *("test_shards.py", "test_report.py", "test_history.py", "test_reader.py", "test_cli.py", "test_index_browser.py"),
)


# Each of these fixtures starts or builds something for seconds: the tests that ask for one are slow.
SLOW = {"browser", "cluster", "wheel_file"}
MAY_BE_SLOW = re.compile(rf"\bmark\.slow\b|\b(?:{'|'.join(SLOW)})\b")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make test-slow` imports the files of slow tests alone: to import all takes ten seconds for each worker."""
    only_slow = config.option.markexpr == "slow" and collection_path.name.startswith("test_")
    return True if only_slow and not MAY_BE_SLOW.search(text_of(collection_path)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SLOW.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    ignored = [
        item.nodeid for item in items if item.get_closest_marker("slow") and not MAY_BE_SLOW.search(text_of(item.path))
    ]
    assert not ignored, "`make test-slow` would not find these tests by the text of their files"
    items.sort(key=lambda item: (shared_runs(item.path) != "fixtures", item.path.name not in LONGEST))


# What names the runs that tests of several files ask for: one worker runs these files and analyses each run once.
SHARED = {"run_of_fixture": "fixtures", "from complaints": "complaints", "run_shown": "pages"}


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def shared_runs(path: Path) -> str | None:
    return next((runs for name, runs in SHARED.items() if name in text_of(path)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class SharedRunsScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return shared_runs(config.rootpath / file) or file

    return SharedRunsScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="rewrite the golden files from what the code says now"
    )


def pytest_collection_finish() -> None:
    # Thousands of tests that stay to the end are not worth a look at each sweep of the garbage.
    gc.set_threshold(50_000, 20, 50)
    gc.freeze()


@pytest.fixture(scope="module")
def analysed_once() -> Iterator[None]:
    """For tests of what is done with runs, which read the same ones again and again."""
    from analysed import analysed_once

    with analysed_once():
        yield


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-goldens"))
