"""Failures that no signature knows: general words, and how their lines are built."""

import pytest

from logparse.failures.general import general_words, words_for
from logparse.inputs.writers import read_prefixes


def test_samples_are_read_by_their_entry():
    samples = [(entry, sample) for entry in general_words() for sample in entry.sample]
    assert samples
    assert [sample for entry, sample in samples if words_for(sample) is not entry] == []


@pytest.mark.parametrize("text", ["ValueError: 7 is odd", "RuntimeError", "RuntimeError: x [{'shape': 7}]"])
def test_nothing_is_known_of_other_messages(text):
    assert words_for(text) is None


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
