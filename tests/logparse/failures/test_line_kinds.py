"""Lines of a kind: what is remembered of one line of it is what each of its lines says."""

from contextlib import contextmanager
from random import Random

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from logparse.failures import general, scan
from logparse.failures.general import general_words, words_for
from logparse.failures.line_kinds import blurred, kind_of
from logparse.failures.signatures import signatures
from logparse.inputs import writers

LINES = [sample for known in (*signatures(), *general_words()) for sample in known.sample]
SAMPLES = [(known, writers.read_prefixes(sample).bare) for known in signatures() for sample in known.sample]
PREFIXES = ("", "[rank7]: ", " 3: [rank3]:", "2026-09-25 16:52:53,123 ", "1970-01-01 00:00:00 [rank0]: ", "node7: ")
BARS = ("", "  2%|▏   | 13/620 [01:07<50:20,  4.98s/it]", "13it [00:10, 1.2it/s]\r")
# Patterns that every line is read with: none of them may name a digit, or lines of a kind would not be read alike.
READERS = [
    *(scan.BAR_END, scan._PROSE, scan._WARNED, scan._LISTED, scan._MILD, writers._PREFIX),
    *(general._EXCEPTION, general._OBJECT),
]


@contextmanager
def every_signature_tried():
    """Lines are read as if no kind was known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "rules_for", lambda text: signatures())
        yield


def assert_read_as_without_kinds(line):
    known = scan._hit_on(line)
    with every_signature_tried():
        assert scan._hit_on(line) == known
    assert words_for(line) is entry_by_all(line)


def entry_by_all(line):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(general, "_of_kind", lambda kind, spoken: general_words())
        return words_for(line)


def with_other_digits(line, random, some=1.0):
    return regex.sub("[0-9]", lambda digit: str(random.randrange(10)) if random.random() < some else digit[0], line)


def test_samples_and_their_kinds_with_other_digits_are_read_as_without_kinds():
    random = Random(0)
    for sample in LINES:
        for line in (sample, kind_of(sample), *(with_other_digits(sample, random) for _ in range(3))):
            assert_read_as_without_kinds(line)


@given(st.sampled_from(BARS), st.sampled_from(PREFIXES), st.sampled_from(LINES), st.randoms(), st.floats(0, 1))
def test_any_line_is_read_as_without_kinds(bar, prefix, sample, random, some):
    assert_read_as_without_kinds(with_other_digits(f"{bar}{prefix}{sample}", random, some))


def test_what_fits_a_sample_fits_its_kind():
    fitting = [(signature, bare) for signature, bare in SAMPLES if signature.search(bare)]
    assert len(fitting) > len(signatures())
    assert [bare for signature, bare in fitting if not signature.blurred.search(kind_of(bare))] == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"Errno (?:28|122)\]", r"Errno (?:\d\d|\d\d\d)\]"),
        (r"\d{3} \x27[A-Z0-9]{1,5}", r"\d{3} \x27[A-Z0-9]{1,5}"),
        (r"code (?!9\b)[1-9]\d*", r"code (?:[1-9]|\d)\d*"),
        (r"failed(?! *[:=] *0)(?!ure)", r"failed(?!ure)"),
    ],
)
def test_a_blurred_pattern_takes_any_digit_for_one_that_is_named(pattern, expected):
    assert blurred(pattern) == expected


def test_what_every_line_is_read_with_names_no_digit():
    assert [pattern.pattern for pattern in READERS if blurred(pattern.pattern) != pattern.pattern] == []


def test_a_count_of_none_and_of_some_are_one_kind_and_read_apart():
    none, some = "3 files failed: 0", "3 files failed: 4"
    assert kind_of(none) == kind_of(some)
    assert (scan._hit_on(none), scan._hit_on(some).meaning.signature) == (None, "error.spoken")


def test_the_same_warning_of_many_ranks_is_judged_once():
    scan._rules_of_kind.cache_clear()
    for rank in range(10, 74):
        assert (
            scan._hit_on(f"[rank{rank}]:[W617 10:00:{rank % 60:02d}.1 T.cpp:5] recvValue failed on fd={rank}") is None
        )
    assert scan._rules_of_kind.cache_info().misses == 1
