"""Failures that no signature knows: general words, and how their lines are built."""

import pytest

from logparse.decode.read_run import diagnose_run
from logparse.failures.general import general_words, words_for
from logparse.inputs.writers import read_prefixes


def test_samples_are_read_by_their_entry():
    samples = [(entry, sample) for entry in general_words() for sample in entry.sample]
    assert samples
    assert [sample for entry, sample in samples if words_for(sample) is not entry] == []


@pytest.mark.parametrize("text", ["ValueError: 7 is odd", "RuntimeError", "RuntimeError: x [{'shape': 7}]"])
def test_nothing_is_known_of_other_messages(text):
    assert words_for(text) is None


def ending(tmp_path, *lines):
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    return diagnose_run([str(tmp_path / "run.log")])


@pytest.mark.parametrize(
    ("lines", "line", "family"),
    [
        (
            (
                "KeyError: 'a'",
                "",
                "During handling of the above exception, another exception occurred:",
                "",
                "OSError: disk quota was exceeded",
            ),
            5,
            "disk",
        ),
        (
            (
                "RuntimeError: Caught ValueError in DataLoader worker process 0.",
                "Original Traceback (most recent call last):",
                "ValueError: cannot decode image 7",
            ),
            3,
            "data",
        ),
        (
            (
                "terminate called after throwing an instance of 'x::Error'",
                "  what():  key not known",
                "Aborted (core dumped)",
            ),
            2,
            "crash",
        ),
        (('  File "a.py", line 7, in load_from_ckpt', "KeyError: 'a'"), 2, "checkpoint"),
        (
            (
                "I0102 03:04:05.678901 42 a.cc:7] failed to find b",
                "2025-01-02 03:04:05.678901: F src/c.cc:80] the service ended",
            ),
            2,
            "crash",
        ),
        (
            (
                "RuntimeError: PytorchStreamWriter failed writing file data/1: file write failed",
                "OSError: [Errno 28] No space left on device",
            ),
            2,
            "disk",
        ),
        (
            (
                "OSError: [Errno 28] No space left on device",
                "RuntimeError: PytorchStreamWriter failed writing file data/1: file write failed",
            ),
            1,
            "disk",
        ),
        (("2025-01-02 03:04:05 [ERROR] trainer: could not reach the name server",), 1, "network"),
    ],
)
def test_the_line_and_the_family_are_those_of_the_cause(tmp_path, lines, line, family):
    found = ending(tmp_path, *lines)
    assert (found.line, found.family) == (line, family)


def test_a_logged_error_is_no_failure_where_the_log_goes_on(tmp_path):
    error = "2025-01-02 03:04:05 [ERROR] trainer: could not reach the name server"
    assert ending(tmp_path, error, *["all is well"] * 40).state == "unknown"


@pytest.mark.parametrize(
    ("prefix", "rank", "local", "host"),
    [
        ("[Rank 3] ", 3, None, None),
        ("[rank: 3] ", 3, None, None),
        ("rank 3: ", 3, None, None),
        ("[1,3]<stderr>:", 3, None, None),
        ("[local_rank 3] ", None, 3, None),
        ("[pod/job-worker-3/main] ", None, None, "job-worker-3"),
        ("node-12: [rank3]: ", 3, None, "node-12"),
        ("trainer-1  | ", None, None, "trainer-1"),
        ("(raylet, ip=10.0.0.2) ", None, None, "10.0.0.2"),
    ],
)
def test_prefixes_name_the_rank_and_the_host(prefix, rank, local, host):
    line = read_prefixes(f"{prefix}ValueError: a")
    assert (line.bare, line.rank, line.local_rank, line.host) == ("ValueError: a", rank, local, host)
