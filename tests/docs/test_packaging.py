"""The wheel holds what the program needs at run time, and every module says what it is for."""

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
import yaml
from helpers import ROOT
from packaging.requirements import Requirement

import logparse
from analysis.cli import COMMANDS
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
        "analysis/installation/golden.toml",
        "analysis/present/schema/analyze.json",
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
    # `logparse explain` prints its items, and `--fields` knows its names by the schema.
    here |= {"analysis/present/views/warnings.md", "analysis/present/schema/analyze.json"}
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


def test_wheel_runs_without_an_index(wheel_file, tmp_path):
    """What the wheel needs is that of the environment of this test, so that the test needs no network."""
    made = run(sys.executable, "-m", "venv", tmp_path / "empty")
    assert made.returncode == 0, made.stderr
    python = tmp_path / "empty/bin/python"
    # First the wheel: pip would take the logparse of this environment for it.
    pip = ("-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-index", "--no-deps")
    done = run(python, *pip, wheel_file, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (packages,) = (tmp_path / "empty/lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    shutil.copy(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log", tmp_path)
    done = run(python.with_name("logparse"), "analyze", "run.log", "--hw", "910b3", "-o", "out", folder=tmp_path)
    assert (done.returncode, "MFU" in done.stdout) == (0, True), done.stderr
    assert (tmp_path / "out/report.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", INTERPRETERS)
def test_wheel_runs_where_there_is_no_network(wheel_file, name):
    """By the steps of docs/install.md; what is downloaded first comes from a package index."""
    path = interpreter(name)
    if path is None:
        pytest.skip(f"{name} is not on this machine")
    found = run(path, "-m", "pip", "download", "-q", "--no-deps", "-d", wheel_file.parent / "found", "mdurl")
    if found.returncode and not THOROUGH:
        pytest.skip(f"no package index is reachable: {found.stderr.strip()}")
    # Python compiles what it imports; all modules of all packages would take longer than the rest of this test.
    done = run("env", "PIP_NO_COMPILE=1", ROOT / ".ci/try-wheel", wheel_file, path)
    assert done.returncode == 0, done.stderr
    assert "newest versions: installed without a network" in done.stdout


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


def containerfile():
    """Each step of the Containerfile: the instruction and its words."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    return [(line.split()[0], line.split()[1:]) for line in lines if line and not line.startswith("#")]


def test_the_container_installs_as_the_makefile_does():
    installs = {" ".join(words).partition("pip ")[2] for step, words in containerfile() if step == "RUN"} - {""}
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    told = {line.partition("$(PIP) ")[2] for line in recipe.partition("\n$(RUNTIME):")[2].split("\n")[:8]} - {""}
    assert {one.replace("--no-cache-dir ", "") for one in installs} == {one.replace("--editable ", "") for one in told}
    assert ("USER", ["10001"]) in containerfile()
    (entry,) = [json.loads(" ".join(words)) for step, words in containerfile() if step == "ENTRYPOINT"]
    assert entry == ["/opt/logparse/bin/logparse"]


def test_the_container_builds_from_what_it_copies(wheel, tmp_path):
    for step, (*sources, target) in containerfile():
        for source in sources if step == "COPY" and not sources[0].startswith("--") else ():
            place = tmp_path / target / ("" if target.endswith(("/", ".")) else ".")
            place.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, place)
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (built,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        assert set(archive.namelist()) == set(wheel.namelist())


def test_the_release_is_tried_with_each_python():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))["jobs"]
    matrix = jobs["try"]["strategy"]["matrix"]
    assert tuple(f"python{version}" for version in matrix["python"]) == EVERY_PYTHON
    assert matrix["versions"] == ["newest", "lowest"]
    assert (jobs["try"]["needs"], jobs["publish"]["needs"], jobs["publish"]["environment"]) == (
        "build",
        "try",
        "release",
    )
    assert "make dist PYTHON=python" in [step.get("run") for step in jobs["build"]["steps"]]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}


def test_a_commit_runs_the_checks_of_make_lint():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].split("\n")[1:5]
    tools = [re.sub(r"^\$\(BIN\)/(.*?)( --check)?( \.)?$", r".venv/bin/\1", line.strip()) for line in recipe]
    assert [hook["entry"] for hook in hooks] == tools


@pytest.mark.parametrize("name", ["unread-log", "wrong-number"])
def test_an_issue_asks_for_answers_of_commands_that_exist(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"))
    labels = [part["attributes"].get("label", "") for part in form["body"]]
    commands = [label.strip("`").split() for label in labels if label.startswith("`logparse ")]
    assert ["logparse", "--version"] in commands
    assert {word for words in commands for word in words[1:] if not word.startswith("-")} <= {
        *COMMANDS,
        "LOG",
        "suggest",
    }


def test_the_version_is_one():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (logparse.__version__, "Apache-2.0")
    (newest, *_) = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest == logparse.__version__


def test_the_page_of_installs_names_each_dependency_and_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    extras = set(re.findall(r"^\| `(\w+)` \| \d+ \|", page, re.MULTILINE))
    assert extras == project["optional-dependencies"].keys() - {"bench", "dev"}
    sized = set(re.findall(r"[a-z][\w-]+", " ".join(re.findall(r"^\| ([^|`]+) \| \d+ \|", page, re.MULTILINE))))
    # Jinja2 takes 1 MB.
    assert {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]} - {"jinja2"} <= sized


def pins(name):
    """Lines ``package==version`` with the rest of the line, of a file of pins."""
    return set(re.findall(r"^([a-z0-9-]+==.*?) \\$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))


def test_users_install_no_tool_of_development():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = {kind: {re.match(r"[\w-]+", one)[0] for one in those} for kind, those in extras.items()}
    needed = (
        {re.match(r"[\w-]+", one)[0] for one in project["dependencies"]}
        | asked["cloud"]
        | asked["pictures"]
        | INSTALLING
    )
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
    first = {str(p): re.match(r'(?:#.*\n)*"""(.+)', p.read_text(encoding="utf-8")) for p in MODULES}
    assert [name for name, line in first.items() if not line or line[1].removesuffix('"""')[-1] not in ".:"] == []
