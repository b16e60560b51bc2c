"""A traceback that is printed as a list of Python is read as one that is printed line by line."""

import pytest

from logparse.failures.scan import find_hits
from logparse.inputs.blocks import TextBlock

CALLS = [
    '  File "/w/run.py", line 30, in main\n    step(state)\n',
    "  File \"/w/model.py\", line 7, in step\n    x = f['k']\n",
]
EXCEPTIONS = [
    "ValueError: sizes [3, 4] and [4] differ",
    "KeyError: 'decoder'",
    'ValueError: it\'s "odd" [x]',
    "AssertionError: a < b",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 17179869184 bytes.",
    "RuntimeError: NCCL error in: a.cpp:3, unhandled system error\nLast error: x",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "KeyboardInterrupt",
]


def last_hit(text):
    found = find_hits(TextBlock("run.log", 1, text.count("\n"), True, text.encode()))[-1]
    meaning = found.meaning
    return meaning.family, meaning.role, meaning.remedy, found.rank, found.detail, [call.name for call in found.frames]


@pytest.mark.parametrize("calls", [CALLS, CALLS * 60], ids=["short", "long"])
@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_a_list_of_strings_is_a_traceback(exception, calls):
    parts = ["Traceback (most recent call last):\n", *calls, f"{exception}\n"]
    first = exception.split("\n")[0]
    by_line = "".join(f"2: {line}\n" for part in [*parts[:-1], first] for line in part.splitlines())
    assert last_hit(f"2: {parts!r}\n") == last_hit(by_line)


def test_of_a_chain_the_last_exception_counts():
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    head = "Traceback (most recent call last):\n"
    parts = [head, *CALLS, "KeyError: 'a'\n", between, head, *CALLS, "MemoryError: no\n"]
    assert last_hit(f"{parts!r}\n")[0] == "host_memory"


def test_of_a_list_that_is_cut_nothing_is_invented():
    cut = repr(["Traceback (most recent call last):\n", *CALLS])[:-20]
    found = find_hits(TextBlock("run.log", 1, 1, True, f"{cut}\n".encode()))
    assert [hit for hit in found if hit.role == "root"] == []
