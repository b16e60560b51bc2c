"""What is new: nights of the past, the list of regressions, and the message to a chat. Servers are on the loopback."""

import json
import threading
from datetime import date, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from helpers import run_logparse
from releases import record, write_run

from analysis.history.events import Event
from analysis.history.folder import Folder
from analysis.history.store import History
from analysis.nightly.past_nights import Nights
from analysis.nightly.policy import read_policy
from analysis.nightly.run_links import is_template, run_url
from logparse.errors import UsageError

pytestmark = pytest.mark.usefixtures("analysed_once")

# Two jobs; the first is 10 % slower on nights 8 to 11 and recovers.
SLOW, NIGHTS = range(8, 12), 17
POLICY = """history = "h"
[gate]
run_url = "https://ci.example.com/{build}?run={run_id}"
[gate.jobs.first]
select = "seq_length=4096"
owners = ["ann"]
"""


def day(night):
    """The day of a night, as write_run has it."""
    return date(2026, 2, 2 + night)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    history = History(Folder(folder / "h"))
    for night in range(NIGHTS):
        slow = 1.1 if night in SLOW else 1.0
        history.add(record(write_run(folder / f"a{night}.log", night, 1000.0 * slow), "r", build=f"n {night}"))
        other = write_run(folder / f"b{night}.log", night, 500.0, seq_length=2048)
        history.add(record(other, "r", build=f"m{night}"))
    (folder / "logparse.toml").write_text(POLICY)
    return folder


def gate(place, *arguments, code=0):
    done = run_logparse("gate", *arguments, cwd=place)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_a_night_of_the_past_is_judged_as_it_was(place):
    verdicts = {
        night: json.loads(gate(place, "--as-of", f"{day(night)}", "--json", code=code))
        for night, code in ((8, 0), (10, 1), (11, 1), (16, 0))
    }
    assert [v["verdict"] for v in verdicts.values()] == ["suspicious", "regression", "regression", "no regression"]
    first = next(job for job in verdicts[10]["jobs"] if job["name"] == "first")
    assert (first["news"], first["runs"]) == ("new", 11)


def test_a_backtest_is_one_row_a_night(place):
    text = gate(place, "--backtest", f"{day(9)}..{day(10)}")
    assert text.startswith("backtest of 2 nights\nnights that fail the gate: ")
    nights = json.loads(gate(place, "--backtest", f"{day(6)}..{day(16)}", "--json"))["nights"]
    assert [night["day"] for night in nights] == [f"{day(n)}" for n in range(6, 17)]
    told = {night["day"]: night for night in nights}
    assert list(told[f"{day(10)}"]["new"]) == ["first"]
    assert [n["fails"] for n in nights][:3] == [False, False, False]
    assert told[f"{day(11)}"]["still_open"] == ["first"]
    assert sum("first" in night["cleared"] for night in nights) == 1
    once = json.loads(gate(place, "--backtest", f"{day(9)}..{day(11)}", "--json", "--fail-on", "new"))["nights"]
    assert [night["day"] for night in once if night["fails"]] == [f"{day(10)}"]
    assert "| night | verdict |" in gate(place, "--backtest", f"{day(9)}..{day(9)}", "--markdown")


def test_each_night_is_judged_as_the_gate_judged_it(place):
    """What a backtest says of a night is what the gate says with the runs until then."""
    nights = Nights(History(Folder(place / "h")))
    each = list(nights.each(read_policy({}), day(7), day(10)))
    assert [[job.verdict for job in night.jobs] for night in each] == [
        [job.verdict for job in nights.judge(read_policy({}), night.day)] for night in each
    ]


def test_a_note_counts_from_the_day_on_which_it_was_written(tmp_path):
    history = History(Folder(tmp_path / "h"))
    runs = [record(write_run(tmp_path / f"{n}.log", n, 1100.0 if n >= SLOW.start else 1000.0)) for n in range(13)]
    for run in runs:
        history.add(run)
    written = datetime(2026, 2, 2 + 11, 9)
    history.say([Event(runs[8].run_id, "accept", written, "kim", "new driver")])
    nights = Nights(history)
    assert [nights.judge(read_policy({}), day(n))[0].verdict for n in (10, 11, 12)] == [
        "regression",
        "no regression",
        "no regression",
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backtest", "2026-02-03"],
        ["--backtest", "2026-02-03..May"],
        ["--backtest", "2020-01-01..2020-01-02"],
        ["--backtest", "2026-02-03..2026-02-04", "-o", "out"],
        ["--as-of", "yesterday"],
        ["--as-of", "2020-01-01"],
        ["--webhook", "ftp://x/y"],
        ["--webhook", ""],
        ["--as-of", "2026-02-03", "--baseline", "release=r", "--candidate", "release=r"],
    ],
)
def test_wrong_usage(place, arguments):
    done = run_logparse("gate", *arguments, cwd=place)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def regressions(place, *arguments):
    return run_logparse("history", "regressions", *arguments, cwd=place).stdout


def test_regressions_are_open_accepted_and_expired(tmp_path):
    history = History(Folder(tmp_path / "h"))
    runs = [record(write_run(tmp_path / f"{n}.log", n, 1100.0 if n > 7 else 1000.0), build=f"n{n}") for n in range(12)]
    for run in runs:
        history.add(run)
    (tmp_path / "logparse.toml").write_text(POLICY)
    (found,) = json.loads(regressions(tmp_path, "--json"))["regressions"]
    assert (found["state"], found["owners"], found["job"]) == ("open", ["ann"], "first")
    assert (found["first_bad"]["run_id"], found["last_good"]["run_id"]) == (runs[8].run_id, runs[7].run_id)
    assert found["first_bad"]["url"] == f"https://ci.example.com/n8?run={runs[8].run_id}"
    assert found["changes"]["steady_step_time_ms"] == pytest.approx(0.1, abs=0.01)
    text = regressions(tmp_path)
    assert text.startswith("regressions: open 1, series ended 0, expired 0, accepted 0, cleared 0\n")
    assert "(owned by ann)" in text
    assert f"<https://ci.example.com/n7?run={runs[7].run_id}>" in regressions(tmp_path, "--markdown")
    at = datetime(2026, 2, 20)
    history.say([Event(runs[8].run_id, "accept", at, "kim", "driver", issue="#7", until=date(2026, 12, 1))])
    (known,) = json.loads(regressions(tmp_path, "--json"))["regressions"]
    assert (known["state"], known["issue"], known["until"], known["user"]) == ("accepted", "#7", "2026-12-01", "kim")
    assert "accepted until 2026-12-01 by kim: driver, #7" in regressions(tmp_path)
    history.say([Event(runs[8].run_id, "accept", at.replace(day=21), "kim", "driver", until=date(2026, 2, 11))])
    (over,) = json.loads(regressions(tmp_path, "--json"))["regressions"]
    assert (over["state"], over["first_bad"]["run_id"], over["until"]) == ("expired", runs[8].run_id, "2026-02-11")
    assert "was accepted until 2026-02-11 by kim" in regressions(tmp_path)


def test_the_address_of_a_run():
    run = {"run_id": "ab", "release": "8.0 RC", "labels": [{"name": "build", "value": "a/b"}], "versions": None}
    assert run_url("https://ci/{build}/{release}", run) == "https://ci/a%2Fb/8.0%20RC"
    assert run_url("https://ci/{other}", run) is None
    assert run_url(None, run) is None
    assert [is_template(text) for text in ("https://ci/{x}", "https://ci/", "file:///{x}", "https://a b/{x}")] == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(UsageError, match=r"gate.run_url is"):
        read_policy({"run_url": "https://ci/"})


@pytest.fixture
def chat():
    """The address of a server, and the messages that it got; it refuses those to /closed."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(500 if self.path == "/closed" else 200)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_only_news_are_sent(place, chat):
    address, got = chat
    for night, code, messages in ((7, 0, 0), (9, 0, 0), (10, 1, 1), (11, 1, 1)):
        gate(place, "--as-of", f"{day(night)}", "--webhook", f"{address}/secret", code=code)
        assert len(got) == messages
    kind, body = got[0]
    message = json.loads(body)
    assert (kind, message["verdict"], [one["job"] for one in message["news"]]) == (
        "application/json",
        "regression",
        ["first"],
    )
    lines = message["text"].splitlines()
    assert lines[:2] == ["verdict: regression", "new tonight: 1; still open: 0; cleared: 0"]
    assert lines[2].startswith("new: first (owned by ann): step time, steady +")
    assert "https://ci.example.com/n%208?run=" in lines[2]
    assert len(lines) <= 10
    gate(place, "--as-of", f"{day(10)}", "--webhook", address, "--webhook-as", "text", code=1)
    assert got[1][0].startswith("text/plain")
    assert got[1][1].splitlines()[0] == "verdict: regression"


def test_a_chat_that_refuses_changes_no_verdict_and_its_address_is_secret(place, chat):
    address, got = chat
    done = run_logparse("gate", "--as-of", f"{day(10)}", "--webhook", f"{address}/closed", cwd=place)
    assert (done.returncode, len(got)) == (1, 1)
    assert "the webhook at 127.0.0.1 did not accept the news" in done.stderr
    assert "closed" not in done.stderr + done.stdout
