"""What holds where no flag says it, by variables and the project file; ``logparse config`` tells where it is from."""

import json

import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, megatron_log, run_logparse

pytestmark = pytest.mark.usefixtures("analysed_once")

STEPS = "".join(f"{megatron_line(step)}\n" for step in range(1, 7))
OTHER = megatron_log(30).replace("per iteration (ms): 10", "per iteration (ms): 11")
PROJECT = """\
# of the team
hw = "910b3"
formula = "megatron"
history = "kept"

world_size = 16
dtype = "bf16"
"""


@pytest.fixture
def project(tmp_path):
    """A project with its file, and a folder of logs below it."""
    (tmp_path / "logparse.toml").write_text(PROJECT)
    logs = tmp_path / "logs" / "today"
    logs.mkdir(parents=True)
    (logs / "run.log").write_text(megatron_log(30))
    (logs / "other.log").write_text(OTHER)
    (logs / "bare.log").write_text(STEPS)
    return tmp_path


@pytest.fixture
def here(project):
    return project / "logs" / "today"


def document(cwd, *arguments, **env):
    done = run_logparse(*arguments, "--json", cwd=cwd, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def held(cwd, *arguments, **env):
    """Value and origin of every setting that holds."""
    settings = document(cwd, "config", *arguments, **env)["settings"]
    return {setting["name"]: (setting["value"], setting["origin"]) for setting in settings}


def run_of(cwd, *arguments, **env):
    (run,) = document(cwd, "analyze", *arguments, **env)["runs"]
    return run


# Who beats whom.


def test_the_project_file_is_found_above(project, here):
    file = project / "logparse.toml"
    assert document(here, "config")["project_file"] == str(file)
    found = held(here)
    assert found["hw"] == ("910b3", f"{file}, line 2")
    assert found["history"] == (str(project / "kept"), f"{file}, line 4")
    assert found["world_size"] == (16, f"{file}, line 6")
    assert found["precision"] == ("bf16", f"{file}, line 7")
    assert found["peak_tflops"] == (None, None)


def test_the_nearest_file_holds(project, here):
    (here / "logparse.toml").write_text('hw = "h100"\n')
    assert held(here)["hw"] == ("h100", f"{here / 'logparse.toml'}, line 1")
    assert held(here)["history"] == (None, None)
    assert held(project)["hw"][0] == "910b3"


def test_a_flag_beats_config_which_beats_the_variable_which_beats_the_project(here):
    (here / "run.toml").write_text('hw = "a100"\n')
    variable = {"LOGPARSE_HW": "h100"}
    assert held(here, **variable)["hw"] == ("h100", "LOGPARSE_HW")
    assert held(here, "--config", "run.toml", **variable)["hw"] == ("a100", "run.toml, line 1")
    assert held(here, "--config", "run.toml", "--hw", "910b", **variable)["hw"] == ("910b", "--hw")
    devices = {
        "Ascend910B3": (),
        "A100 SXM4 80GB": ("--config", "run.toml"),
        "Ascend910B1": ("--config", "run.toml", "--hw", "910b1"),
    }
    for name, flags in devices.items():
        assert run_of(here, "run.log", *flags)["device"]["name"] == name
    assert "H100" in run_of(here, "run.log", **variable)["device"]["name"]


def test_a_variable_that_is_empty_says_nothing(here):
    assert held(here, LOGPARSE_HW="")["hw"][0] == "910b3"


def test_a_device_beats_a_weaker_peak_and_a_peak_a_weaker_device(here):
    (here / "peak.toml").write_text("peak_tflops = 100\n")
    assert run_of(here, "run.log", "--config", "peak.toml")["device"]["peak_tflops_per_second"] == 100
    both = run_of(here, "run.log", "--config", "peak.toml", "--hw", "910b1")
    assert both["device"]["name"] == "Ascend910B1"
    found = held(here, "--config", "peak.toml")
    assert found["peak_tflops"] == (100.0, "peak.toml, line 1")


def test_the_formula_holds_and_is_said_by_default(project, here, tmp_path_factory):
    assert run_of(here, "run.log")["formula"]["name"] == "megatron"
    assert run_of(here, "run.log", "--formula", "6n")["formula"]["name"] == "6n"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert held(elsewhere)["formula"] == ("ascendspeed", "assumed")
    assert "by default" in run_logparse("config", cwd=elsewhere).stdout


def test_requirements_of_the_project_hold_but_for_figures_of_a_flag(project, here):
    (project / "logparse.toml").write_text('require = ["mfu>=0.1", "goodput>=0.1"]\n')
    done = run_logparse("analyze", "run.log", "-q", "--require", "mfu<=0.001", "--hw", "b200", cwd=here)
    assert done.returncode == 1
    assert "fail: mfu<=0.001" in done.stdout
    assert "pass: goodput>=0.1" in done.stdout
    assert "mfu>=0.1" not in done.stdout
    settings = document(here, "config", "--require", "mfu<=0.001")["settings"]
    required = {setting["value"]: setting["from"] for setting in settings if setting["name"] == "require"}
    assert [(text, origin["kind"]) for text, origin in required.items()] == [
        ("mfu<=0.001", "flag"),
        ("goodput>=0.1", "config"),
    ]


# Quantities of the project say what a log does not.


def test_what_the_log_prints_beats_the_project(here):
    assert run_of(here, "run.log")["context"]["world_size"]["value"] == SETTINGS["world_size"]
    assert run_of(here, "run.log", "--dp", "8", "--devices", "16")["context"]["world_size"]["value"] == 16


def test_what_the_log_lacks_is_from_the_project(project, here):
    fact = run_of(here, "bare.log")["context"]["world_size"]
    assert (fact["value"], fact["origin"]) == (16, f"config file {project / 'logparse.toml'}")


def test_what_follows_from_the_log_beats_the_project(here):
    sizes = {name: SETTINGS[name] for name in SETTINGS if name.endswith("parallel_size")}
    (here / "sizes.log").write_text(arguments_dump(sizes) + STEPS)
    assert run_of(here, "sizes.log")["context"]["world_size"]["value"] == 8


def test_the_model_of_the_project_gives_a_shape_that_is_lacking(project, here):
    (project / "logparse.toml").write_text('model = "llama2-13b"\n')
    assert run_of(here, "bare.log")["context"]["num_layers"]["origin"] == "--model llama2-13b"
    assert run_of(here, "run.log")["context"]["num_layers"]["value"] == SETTINGS["num_layers"]


# The history.


def test_history_is_found_by_the_project_and_by_the_variable(project, here):
    recorded = run_logparse("record", "run.log", "--release", "one", cwd=here)
    assert (recorded.returncode, (project / "kept").is_dir()) == (0, True)
    assert len(document(here, "history", "list")["runs"]) == 1
    assert document(here, "history", "list", LOGPARSE_HISTORY=str(project / "kept"))["runs"]
    assert run_logparse("trend", cwd=here).returncode == 0
    assert run_logparse("compare", "release=one", "other.log", cwd=here).returncode == 0
    nowhere = run_logparse("history", "list", cwd=here, LOGPARSE_HISTORY="gone")
    assert (nowhere.returncode, "there is no history in gone" in nowhere.stderr) == (2, True)


def test_two_logs_are_compared_without_the_history_that_stands(here):
    done = run_logparse("compare", "run.log", "other.log", cwd=here)
    assert (done.returncode, "no history" in done.stderr) == (0, False)


def test_no_history_names_all_ways_to_give_one(tmp_path):
    done = run_logparse("trend", cwd=tmp_path)
    assert done.returncode == 2
    assert "--history DIR, the variable LOGPARSE_HISTORY, or history in logparse.toml" in done.stderr


# What cannot be used.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('hw = "910b9"\n', "unknown device '910b9'"),
        ('model = "lama"\n', "unknown model 'lama'"),
        ("hww = 3\n", "unknown key 'hww'"),
        ("hw = 3\n", "hw is 3"),
        ("hw =\n", "not a TOML file"),
        ('require = ["mfuu>=1"]\n', "unknown figure 'mfuu'"),
        ("history = 3\n", "history is 3"),
    ],
)
def test_a_project_file_that_cannot_be_used_is_named(project, here, text, said):
    (project / "logparse.toml").write_text(text)
    done = run_logparse("analyze", "run.log", cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "try:" in done.stderr


def test_a_variable_that_cannot_be_used_is_named(here):
    done = run_logparse("analyze", "run.log", cwd=here, LOGPARSE_HW="910b9")
    assert (done.returncode, "where: LOGPARSE_HW" in done.stderr) == (2, True)


def test_a_config_file_has_no_history(here):
    (here / "run.toml").write_text('history = "x"\n')
    done = run_logparse("analyze", "run.log", "--config", "run.toml", cwd=here)
    assert (done.returncode, "unknown key 'history'" in done.stderr) == (2, True)


def test_estimate_takes_the_device_of_the_project(here, tmp_path_factory):
    job = ("estimate", "--model", "llama2-7b", "--devices", "8", "--seq-length", "4096", "--formula", "megatron")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert document(here, *job) == document(elsewhere, *job, "--hw", "910b3")
    assert document(here, *job) != document(elsewhere, *job)


def test_people_are_told_in_their_language(here):
    assert "项目文件：" in run_logparse("config", cwd=here, LANG="zh_CN.UTF-8").stdout
    assert "第 2 行" in run_logparse("config", cwd=here, LANG="zh_CN.UTF-8").stdout
