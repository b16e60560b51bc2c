"""What stands at the foot of a page: the command, without secrets and without where the page was put."""

import pytest

from analysis.commands.analyze import command_as_given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["analyze", "my run.log", "--hw", "910b3"], "logparse analyze 'my run.log' --hw 910b3"),
        (["analyze", "a.log", "-o", "out", "--force", "-v"], "logparse analyze a.log"),
        (["analyze", "a.log", "--out=out", "-oother", "--shard", "1/2", "--engine=ray"], "logparse analyze a.log"),
        (["analyze", "https://me:word@host/a.log?signature=x"], "logparse analyze https://host/a.log"),
        (["analyze", "--config=s3://key:secret@bucket/c.toml"], "logparse analyze --config=s3://bucket/c.toml"),
    ],
)
def test_the_command_as_given(given, said, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/logparse", *given])
    assert command_as_given() == said
