"""The wheel holds what the program needs at run time, and every module says what it is for."""

import ast
import hashlib
import importlib.metadata
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest
from helpers import ROOT
from packaging.requirements import Requirement

import logparse
from logparse.package_tables import COMPILED

MODULES = sorted(f for package in ("logparse", "analysis") for f in (ROOT / package).rglob("*.py"))


# Installing from a checkout builds.
INSTALLING = {"editables", "hatchling"}


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(wheel_file):
    with zipfile.ZipFile(wheel_file) as archive:
        yield archive


@pytest.mark.parametrize(
    "name",
    [
        "logparse/__init__.py",
        "analysis/cli.py",
        "logparse/py.typed",
        "logparse/formats/megatron.py",
        "analysis/__init__.py",
        "analysis/py.typed",
        "analysis/hardware/devices.toml",
        "analysis/model/models.toml",
        "analysis/flops/megatron.py",
    ],
)
def test_wheel_holds(wheel, name):
    assert name in wheel.namelist()


def test_wheel_holds_every_file_of_both_packages(wheel):
    here = {
        f.relative_to(ROOT).as_posix()
        for package in ("logparse", "analysis")
        for f in (ROOT / package).rglob("*")
        if f.is_file() and "__pycache__" not in f.parts
    }
    # `logparse explain` prints its items.
    here.add("analysis/present/views/warnings.md")
    assert here == {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_wheel_holds_each_table_compiled(wheel, tmp_path):
    names = [name for name in wheel.namelist() if name.endswith(".toml")]
    assert len(names) > 10
    for name in names:
        compiled = name.removesuffix(".toml") + COMPILED
        digest, table = wheel.read(compiled).split(b"\n", 1)
        assert digest.decode() == hashlib.sha256(wheel.read(name)).hexdigest()
        assert json.loads(table) == tomllib.loads(wheel.read(name).decode())


def test_wheel_holds_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {re.sub(r"^logparse-.*\.dist-info$", "dist-info", top) for top in tops} == {
        "logparse",
        "analysis",
        "dist-info",
    }


def test_wheel_has_the_command_and_the_licence(wheel):
    (entry,) = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
    assert "logparse = logparse.__main__:main" in wheel.read(entry).decode()
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_data_files_are_whole_in_the_wheel(wheel):
    for name in ("analysis/hardware/devices.toml", "analysis/model/models.toml"):
        assert wheel.read(name) == (ROOT / name).read_bytes()


EVERY_PYTHON = ("python3.11", "python3.12", "python3.13", "python3.14")
RUNNING = f"python{sys.version_info.major}.{sys.version_info.minor}"
# `make wheel` tries all and needs a package index; `make test-slow` tries the one that runs the tests.
THOROUGH = bool(os.environ.get("LOGPARSE_EVERY_PYTHON"))
INTERPRETERS = EVERY_PYTHON if THOROUGH else (RUNNING,)
OF_PYENV = Path.home() / ".pyenv/versions"


def run(*command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run outside the checkout, with nothing of it on the path of Python."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)


def interpreter(name: str) -> str | None:
    """Path of an interpreter that runs and can make environments; a shim of pyenv may do neither."""
    found = OF_PYENV.glob(f"{name.removeprefix('python')}.*/bin/{name}")
    for path in [sys.executable] if name == RUNNING else [name, *map(str, found)]:
        if shutil.which(path) and run(path, "-c", "import ensurepip, venv").returncode == 0:
            return path
    return None


def empty_environment(python: str, folder: Path) -> Path:
    """The interpreter of a new environment that holds pip alone."""
    made = run(python, "-m", "venv", folder / "empty")
    assert made.returncode == 0, made.stderr
    return folder / "empty/bin/python"


def install(python: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    pip = ("-m", "pip", "-q", "--disable-pip-version-check", "install")
    return run(python, *pip, *arguments, folder=python.parents[2])


def check_installed(python: Path) -> None:
    """The command works from outside the checkout, by the packages of the environment of ``python``."""
    folder = python.parents[2]
    shutil.copy(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log", folder)
    done = run(python.with_name("logparse"), "analyze", "run.log", "--hw", "910b3", "-o", "out", folder=folder)
    assert (done.returncode, "MFU" in done.stdout) == (0, True), done.stderr
    assert (folder / "out/report.html").stat().st_size > 10_000
    places = run(python, "-c", "import analysis, logparse; print(analysis.__file__, logparse.__file__)", folder=folder)
    assert [Path(place).is_relative_to(folder / "empty") for place in places.stdout.split()] == [True, True]


def test_wheel_runs_without_an_index(wheel_file, tmp_path):
    """What the wheel needs is that of the environment of this test, so that the test needs no network."""
    python = empty_environment(sys.executable, tmp_path)
    # First the wheel: pip would take the logparse of this environment for it.
    done = install(python, "--no-index", "--no-deps", wheel_file)
    assert done.returncode == 0, done.stderr
    (packages,) = (tmp_path / "empty/lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    check_installed(python)


@pytest.mark.parametrize("name", INTERPRETERS)
def test_wheel_runs_after_plain_pip(wheel_file, tmp_path, name):
    path = interpreter(name)
    if path is None:
        pytest.skip(f"{name} is not on this machine")
    python = empty_environment(path, tmp_path)
    found = install(python, "--dry-run", "--no-deps", "--retries", "0", "--timeout", "10", "rich")
    if found.returncode and not THOROUGH:
        pytest.skip(f"no package index is reachable: {found.stderr.strip()}")
    # Python compiles what it imports; all modules of all packages would take longer than the rest of this test.
    done = install(python, "--no-compile", wheel_file)
    assert done.returncode == 0, done.stderr
    check_installed(python)


def test_each_python_of_the_classifiers_is_tried():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in project["classifiers"]]
    assert tuple(f"python{version[1]}" for version in versions if version) == EVERY_PYTHON


def test_what_runs_on_every_landing_tries_the_wheel():
    """In all Pythons of the machine, as a target of the Makefile does."""
    assert "\nLOGPARSE_EVERY_PYTHON=1 make test-slow " in (ROOT / ".ci/run").read_text(encoding="utf-8")
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nwheel:")[2].split("\n")[1]
    assert "LOGPARSE_EVERY_PYTHON=1" in recipe
    assert "-k wheel_runs tests/docs/test_packaging.py" in recipe


def pins(name):
    """Lines ``package==version`` with the rest of the line, of a file of pins."""
    return set(re.findall(r"^([a-z0-9-]+==.*?) \\$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


def test_users_install_no_tool_of_development():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = {kind: {re.match(r"[\w-]+", one)[0] for one in those} for kind, those in extras.items()}
    needed = {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]} | asked["cloud"] | asked["pictures"] | INSTALLING
    pinned = {pin.partition("==")[0] for pin in pins("constraints.txt")}
    assert needed <= pinned
    assert pinned & asked["dev"] == INSTALLING
    assert pins("constraints.txt") < pins("constraints-dev.txt")


def test_pins_are_within_the_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    bounds = {(one := Requirement(text)).name: one.specifier for text in asked}
    pinned = [re.match(r"([\w-]+)==([\w.]+)", pin).groups() for pin in pins("constraints-dev.txt")]
    assert bounds.keys() <= {name for name, _ in pinned}
    assert [(name, pin) for name, pin in pinned if name in bounds and pin not in bounds[name]] == []


def test_installed_version_is_that_of_the_project():
    assert importlib.metadata.version("logparse") == logparse.__version__


def test_every_module_has_a_docstring():
    texts = {str(p): ast.get_docstring(ast.parse(p.read_text(encoding="utf-8"))) or "" for p in MODULES}
    assert [name for name, text in texts.items() if not text.split("\n")[0].endswith((".", ":"))] == []
