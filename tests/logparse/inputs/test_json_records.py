"""Lines that a collector keeps as records of JSON, such as docker's."""

import pytest

from logparse.inputs.json_records import lines_of_records


@pytest.mark.parametrize(
    ("records", "lines"),
    {
        "a line after its time": (
            ['{"log":"a\\n","stream":"stdout","time":"2025-03-04T05:06:07Z"}'],
            ["2025-03-04T05:06:07Z a"],
        ),
        "several lines of one record": (['{"level":"error","message":"a\\nb"}'], ["a\\nb"]),
        "a line that is no record": (['{"log":"a\\n"}', "b"], ["a", "b"]),
        "metrics of a trainer": (['{"message":"step","loss":2.5}'], ['{"message":"step","loss":2.5}']),
        "a number for a line": (['{"message":3}'], ['{"message":3}']),
        "an empty line": (['{"log":"\\n"}', '{"log":"a"}'], ["", "a"]),
        "a line before the first record": (["a", '{"log":"b"}'], ["a", "b"]),
        "a record without its first character": (['"log":"a\\n"}', '{"log":"b\\n"}'], ["a", "b"]),
        "a half of a character": (['{"log":"a \\ud83d"}'], ["a ?"]),
        "a list": (["{", '"log": 1', "}"], ["{", '"log": 1', "}"]),
    }.values(),
)
def test_lines_of_records(records, lines):
    """Only what collectors and loggers write is unwrapped."""
    assert lines_of_records("\n".join(records).encode()) == "\n".join(lines).encode()
