from logparse.decode.marker_filter import search_all
from logparse.decode.marker_fragments import Sieve, fragments_of
from logparse.formats import known_formats

LITERALS = search_all(known_formats()).markers
NOISE = b"INFO train: waiting for the next batch of the loader, step by step\n" * 1000


def test_each_literal_holds_one_of_few_parts():
    parts = fragments_of(LITERALS, NOISE)
    assert all(any(part in literal for part in parts) for literal in LITERALS)
    assert len(parts) < len(set(LITERALS)) * 2 / 3


def test_no_part_stands_all_over_the_log_unless_its_literals_do():
    parts = fragments_of(LITERALS, NOISE)
    assert any("oss" in part for part in parts)
    assert not [part for part in parts if part.encode() in NOISE]
    assert fragments_of(["train", "trainer"], NOISE) == ["trai"]


def test_the_first_text_decides():
    sieve = Sieve(["elapsed time", "time (ms) |"])
    assert sieve.pattern(NOISE) == sieve.pattern(b"a time, and time again; " * 1000) == "time"
    assert Sieve(sieve.literals).pattern(b"a time, and time again; " * 1000) == r"elapsed\ time|time\ \(ms\)\ \|"
