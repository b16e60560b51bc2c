"""A package of the user that is called ``analysis`` too: next to ours, or in place of it.

Each case runs in a process of its own, because a process imports ``analysis`` only once.
"""

import sys
from pathlib import Path

import pytest
from helpers import run_process

import analysis

SHADOWED = "another package called 'analysis' is imported in place of logparse's"
# The current folder is searched first, as in a notebook. ``analyze`` must not get as far as the log, which is missing.
ANALYZE = "import logparse; logparse.analyze('no.log')"
ENTRIES = {
    "analyze": [sys.executable, "-c", ANALYZE],
    "from-import": [sys.executable, "-c", "from logparse import analyze"],
    "module": [sys.executable, "-m", "logparse", "analyze", "no.log"],
}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def python(program: str, folder: Path, **env: str):
    return run_process(cwd=folder, command=[sys.executable, "-c", program], **env)


@pytest.mark.parametrize("place", ["current", "path"])
def test_a_folder_of_the_user_keeps_its_modules(tmp_path, place):
    folder = tmp_path if place == "current" else tmp_path / "on the path"
    write(folder / "analysis/theirs.py", "NAME = 'theirs'\n")
    env = {} if place == "current" else {"PYTHONPATH": str(folder)}
    done = python("import analysis.theirs, analysis.metrics; print(analysis.theirs.NAME)", tmp_path, **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "theirs\n", "")


def test_a_module_of_ours_is_found_before_one_of_the_same_name(tmp_path):
    write(tmp_path / "analysis/metrics.py", "raise RuntimeError('imported')\n")
    done = python("import analysis.metrics; print(analysis.metrics.__file__)", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()) == Path(analysis.__file__).with_name("metrics.py")


def test_a_folder_of_the_user_does_not_keep_logparse_from_running(tmp_path):
    write(tmp_path / "analysis/theirs.py", "")
    assert "no such file: no.log" in run_process(cwd=tmp_path, command=ENTRIES["module"]).stderr


@pytest.mark.parametrize("shape", ["analysis/__init__.py", "analysis.py"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_package_in_place_of_ours_is_named(tmp_path, entry, shape):
    stranger = write(tmp_path / shape, "raise RuntimeError('imported')\n")
    done = run_process(cwd=tmp_path, command=ENTRIES[entry])
    assert done.returncode in (1, 2)
    text = done.stderr[done.stderr.index(SHADOWED) :]
    assert text.splitlines() == [
        SHADOWED,
        f"  where: {stranger}",
        "  try:   start logparse from another folder",
    ]


def test_a_package_that_is_imported_already_is_named(tmp_path):
    """As in a notebook that has left the folder of the other package since."""
    stranger = write(tmp_path / "theirs/analysis/__init__.py", "")
    program = f"import sys; sys.path.insert(0, 'theirs'); import analysis; sys.path.pop(0); {ANALYZE}"
    done = python(program, tmp_path)
    assert f"InputError: {SHADOWED}\n  where: {stranger}\n" in done.stderr


def test_the_error_is_one_that_scripts_can_catch(tmp_path):
    write(tmp_path / "analysis/__init__.py", "")
    lines = ["from logparse.errors import InputError", "try:", f"    {ANALYZE}"]
    lines += ["except InputError as error:", "    print(error.problem)"]
    assert python("\n".join(lines), tmp_path).stdout.strip() == SHADOWED
