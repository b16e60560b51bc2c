"""Every signature reads its samples, and no other signature reads them first."""

import itertools

import pytest
from helpers import megatron_line

from analysis.present.words import words
from logparse.failures.scan import find_hits
from logparse.failures.signatures import JUDGED, exit_code, signatures
from logparse.inputs.blocks import TextBlock
from logparse.language import LANGUAGES

SAMPLES = [(signature, sample) for signature in signatures() for sample in signature.sample]
NOT_JUDGED = ("end", "again", "advice", "ignored", "context")
# Roles of lines of which no hit is made.
UNSEEN = ("advice",)
BARS = ("  2%|▏   | 13/620 [01:07<50:20,  4.98s/it]", "13it [00:10, 1.2it/s]", "reading\r")
ROOTS = [(signature, sample) for signature, sample in SAMPLES if signature.role in ("root", "explains")]


def hits(text):
    return find_hits(TextBlock("run.log", 1, text.count("\n"), True, text.encode()))


def test_each_has_an_id_of_its_own_and_a_known_role():
    ids = [signature.id for signature in signatures()]
    assert len(ids) == len(set(ids))
    assert {signature.role for signature in signatures()} <= {*JUDGED, *NOT_JUDGED}
    assert all(signature.sample and (signature.marks or signature.find) for signature in signatures())


@pytest.mark.parametrize("heads", [("",), BARS], ids=["alone", "after a bar without a newline"])
def test_samples_are_read_by_their_signature(heads):
    wrong = {}
    for (signature, sample), head in zip(SAMPLES, itertools.cycle(heads), strict=False):
        found = [hit.meaning.signature for hit in hits(f"{head}{sample}\n")]
        if found != ([] if signature.role in UNSEEN else [signature.id]):
            wrong[head + sample] = (signature.id, found)
    assert wrong == {}


def test_a_rank_in_front_of_a_sample_is_found():
    wrong = {}
    for signature, sample in ROOTS:
        found = [(hit.meaning.signature, hit.rank) for hit in hits(f"[rank7]: {sample}\n")]
        if found != [(signature.id, 7)]:
            wrong[sample] = (signature.id, found)
    assert wrong == {}


def test_an_error_on_a_bar_has_the_rank_before_it_and_is_quoted_without_the_bar():
    bar = "  2%|▏   | 13/620 [01:07<50:20,  4.98s/it, loss=[0.3]]"
    for text in (f"{bar}[rank3]: ValueError: a", f"[rank3]:{bar}ValueError: a", f"{bar}\r{bar}[rank3]: ValueError: a"):
        (hit,) = hits(f"{text}\n")
        assert (hit.rank, hit.text[-13:], "%|" in hit.text) == (3, "ValueError: a", False)


def test_a_long_line_keeps_the_code_of_its_message():
    detail = "device 0, serial number 1, " * 8
    (hit,) = hits(f"node-1: EI9999: 2025-01-02-03:04:05.000.001  {detail}hccl fftsplus task timeout occurred\n")
    assert hit.text.startswith("EI9999: …")
    (hit,) = hits("node-1: EI9999: 2025-01-02-03:04:05.000.001  The device(chipId:0): hccl fftsplus task timeout\n")
    assert hit.text.startswith("node-1: EI9999: ")


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("AssertionError: Rank 6: found NaN in local grad norm in backward pass. Device: 6, node: n3", 6),
        (
            "[E ProcessGroupNCCL.cpp:916] [Rank 2] thread terminated with exception: CUDA error: uncorrectable",
            2,
        ),
        ("[ERROR] 2025-01-02-03:04:05 (PID:7, Device:5, RankID:21) ERR02200 DIST call hccl api failed.", 21),
        ("[ERROR] 2025-01-02-03:04:05 (PID:7, Device:5, RankID:-1) ERR02200 DIST call hccl api failed.", None),
        ("Unexpected result nan on rank 5 at iteration #12 invocation #0 (message='found NaN in loss')", 5),
        ("srun: error: n7: task 3: Out Of Memory", 3),
        ("RuntimeError: no answer from Rank 4: closed", None),
    ],
)
def test_a_message_names_the_rank_that_prints_it(text, rank):
    (hit,) = hits(f"{text}\n")
    assert hit.rank == rank


def test_a_message_of_cann_has_the_rank_of_the_line_above_it():
    head = "[ERROR] 2025-01-02-03:04:05 (PID:7, Device:5, RankID:21) ERR02200 DIST call hccl api failed.\n"
    busy = "EJ0001: 2025-01-02-03:04:05.1 Failed to initialize the HCCP process.\n"
    assert [hit.rank for hit in hits(head + busy)] == [21, 21]
    assert [hit.rank for hit in hits(head + "x\n" * 9 + busy)] == [21, None]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_other_log_to_collect_has_its_words(language):
    assert {signature.collect for signature in signatures() if signature.collect} == words(language)["collects"].keys()


@pytest.mark.parametrize(
    ("code", "signal", "expected"),
    [
        ("137", None, -9),
        ("139", None, -11),
        ("-9", None, -9),
        ("1", None, 1),
        (None, "15", -15),
        (None, "SIGHUP", -1),
        (None, "Bus", None),
        (None, None, None),
    ],
)
def test_exit_codes_are_those_of_python(code, signal, expected):
    assert exit_code(code, signal) == expected


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("command terminated with exit code 137", "killed"),
        ("mpirun noticed that process rank 3 with PID 4 on node n7 exited on signal 9 (Killed).", "killed"),
        ("mpirun noticed that process rank 3 with PID 4 on node n7 exited on signal 11 (Segmentation fault).", "crash"),
        ("x.py:434] Process 4242 exits with return code = -7", "shared_memory"),
        ("x.py:869] failed (exitcode: 1) local_rank: 3 (pid: 4245)", "unknown"),
    ],
)
def test_an_exit_code_says_what_failed(text, family):
    assert [hit.family for hit in hits(f"{text}\n")] == [family]


@pytest.mark.parametrize(
    "text",
    [
        "CUDA kernel errors might be asynchronously reported at some other API call",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "[rank0]:[W617] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL",
        megatron_line(3, pairs={"number of nan iterations": "  0"}),
        "INFO:httpx:HTTP Request: GET x 429 ValueError handled",
        "the loss function is ErrorTolerantLoss",
        "error: none",
        "saving checkpoint at iteration 10 to /x/OutOfMemory",
        "    raise ValueError(message)",
        "    if full: raise torch.OutOfMemoryError('CUDA out of memory.')",
        "    else: raise torch.OutOfMemoryError('CUDA out of memory.')",
        "| ValueError | what to do |",
        "## Training completed",
        "node7:14051:14895 [0] NCCL INFO [Service thread] Connection closed by localRank 3",
        "W bfc.cc:217] ran out of memory trying to allocate 2GiB. The caller indicates that this is no failure",
        "WARNING:hub:'(MaxRetryError('Max retries exceeded with url: /m'))' thrown while requesting HEAD https://h/m",
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 0.5",
        "RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)",
    ],
)
def test_what_is_no_failure(text):
    assert [hit for hit in hits(f"{text}\n") if hit.role in (*JUDGED, "end")] == []


def test_a_bare_assertion_says_what_was_asserted():
    code = " 3: [rank3]:     assert a < b\n 8: [rank8]:     assert c < d\n 3: [rank3]:     ^^^^\n"
    hit = hits(code + " 3: [rank3]: AssertionError\n")[-1]
    assert hit.text == "3: [rank3]: AssertionError: assert a < b"


def test_a_long_line_is_quoted_around_its_mark():
    (hit,) = hits("x" * 5000 + "\r" + "y" * 90 + " DUE TO TIME LIMIT ***\n")
    assert len(hit.text) <= 160
    assert "DUE TO TIME LIMIT" in hit.text


def test_a_secret_in_a_quoted_line_is_masked():
    (hit,) = hits("ValueError: cannot use api_key=abcDEF123456789\n")
    assert "abcDEF" not in hit.text


def test_many_lines_of_a_block_are_read_at_both_ends():
    found = hits("ValueError: x\n" * 9000)
    assert (len(found), found[0].line, found[-1].line) == (4000, 1, 9000)
