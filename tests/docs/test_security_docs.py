"""What docs/security.md shows is what happens."""

import pytest
import regex
from helpers import ROOT, run_shown

from analysis.history.pseudonym_key import KEY_FILE
from logparse.masking import mask_setting, mask_text

pytestmark = pytest.mark.usefixtures("analysed_once")

TEXT = (ROOT / "docs/security.md").read_text(encoding="utf-8")
BLOCKS = regex.findall(r"```(?:sh)?\n(.*?)```", TEXT, regex.DOTALL)


def test_the_example_shows_what_is_shown(tmp_path):
    log = tmp_path / "lab7.log"
    run = (ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log").read_text(encoding="utf-8")
    made, diagnosed, recorded, shown = BLOCKS
    (line,) = regex.findall(r"^echo '(.*)' >> lab7.log$", made, regex.MULTILINE)
    kept = [text for text in run.splitlines() if "exiting program" not in text]
    log.write_text("\n".join([*kept, line, ""]), encoding="utf-8")
    done = run_shown(made.strip().splitlines()[-1], tmp_path)
    assert done.stdout.split() == diagnosed.split()
    done = run_shown(recorded.strip(), tmp_path)
    pseudonym = regex.compile(r"(?<=(?:run|host)-)[0-9a-f]{8}")
    assert pseudonym.sub("x", done.stdout).split() == pseudonym.sub("x", shown).split()
    assert (tmp_path / "runs" / KEY_FILE).is_file()
    assert KEY_FILE in TEXT


def test_what_the_page_calls_masked_is_masked():
    rows = regex.findall(r"^\| ([^|]+) \| ([^|]+) \|$", TEXT, regex.MULTILINE)[2:]
    cells = dict(rows)
    names = regex.findall(r"`(\S+?)`", cells["values of settings, variables and arguments with a secret's name"])
    assert [name for name in names if not mask_setting(name, "Leak1Zq8kd0").startswith("***")] == []
    spelled = [text.replace("x", "Leak1Zq8kd0", 1) for text in regex.findall(r"`([^`]+)`", cells["in any spelling"])]
    assert [text for text in spelled if "Leak1Zq8kd0" in mask_text(text)] == []
    prefixes = regex.findall(r"`(\S+)`", cells["keys and tokens with a known prefix"])
    assert [prefix for prefix in prefixes if "***" not in mask_text(f"{prefix}LEAK0123456789")] == []
    commands = regex.findall(r"`([^`]+)`", cells["commands"])
    given = [f"{command} {'bob:' if command == 'curl -u' else ''}Leak1Zq" for command in commands]
    given = [text.replace("mysql -p ", "mysql -p") for text in given]
    assert [text for text in given if "Leak1Zq" in mask_text(text)] == []


def test_the_documentation_links_it():
    assert "(security.md)" in (ROOT / "docs/README.md").read_text(encoding="utf-8")
    assert "(docs/security.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
