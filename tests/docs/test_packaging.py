"""The wheel holds what the program needs at run time, and every module says what it is for."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from helpers import ROOT

import logparse

MODULES = sorted(f for package in ("logparse", "analysis") for f in (ROOT / package).rglob("*.py"))


# Installing from a checkout builds.
INSTALLING = {"editables", "hatchling"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
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
    assert here == {name for name in wheel.namelist() if ".dist-info/" not in name}


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


def pins(name):
    """Lines ``package==version`` with the rest of the line, of a file of pins."""
    return set(re.findall(r"^([a-z0-9-]+==.*?) \\$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


def test_users_install_no_tool_of_development():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = {kind: {re.match(r"[\w-]+", one)[0] for one in those} for kind, those in extras.items()}
    needed = {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]} | asked["cloud"] | INSTALLING
    pinned = {pin.partition("==")[0] for pin in pins("constraints.txt")}
    assert needed <= pinned
    assert pinned & asked["dev"] == INSTALLING
    assert pins("constraints.txt") < pins("constraints-dev.txt")


def test_installed_version_is_that_of_the_project():
    assert importlib.metadata.version("logparse") == logparse.__version__


def test_every_module_has_a_docstring():
    texts = {str(p): ast.get_docstring(ast.parse(p.read_text(encoding="utf-8"))) or "" for p in MODULES}
    assert [name for name, text in texts.items() if not text.split("\n")[0].endswith((".", ":"))] == []
