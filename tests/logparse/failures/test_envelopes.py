"""What a tool put around every line of a log does not change the cause, its rank or its calls."""

import html
import json

import pytest

from logparse.decode.read_run import diagnose_run

LOG = [
    "step 1",
    "[rank3]: Traceback (most recent call last):",
    '[rank3]:   File "/home/a/train.py", line 12, in main',
    "[rank3]:     loss = model(batch)",
    '[rank3]:   File "/env/lib/python3.11/site-packages/torch/nn/functional.py", line 40, in linear',
    "[rank3]:     return torch._C._nn.linear(x, w)",
    "[rank3]: RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x8)",
]
ENVELOPES = {
    "a comment": "# {}".format,
    "a quote": "> {}".format,
    "a stamp of the day": "12:03:04 {}".format,
    "a logger": "2025-03-04 05:06:07,123 - root - ERROR - {}".format,
    "loguru": "2025-03-04 05:06:07.123 | {}".format,
    "the file and the number of a line": lambda line: f"job.err-{len(line)}-{line}",
    "a pod": "trainer-0 pytorch {}".format,
    "kubectl with a stamp": "2025-03-04T05:06:07.123456789Z {}".format,
    "a file of containerd": "2025-03-04T05:06:07.123456789Z stderr F {}".format,
    "a record of docker": lambda line: json.dumps(
        {"log": f"{line}\n", "stream": "stderr", "time": "2025-03-04T05:06:07.1Z"}
    ),
    "a record of a logger": lambda line: json.dumps({"level": "error", "message": line}),
    "blanks that are not of ASCII": "节点：3\u3000trainer\xa0> {}".format,
    "a page of HTML": html.escape,
}


def test_the_ending_is_that_of_the_lines_alone(tmp_path):
    """Read the same log with and without what a tool put around its lines."""
    path = tmp_path / "run.log"
    endings = {}
    for name, envelope in {"bare": str, **ENVELOPES}.items():
        path.write_text("\n".join(map(envelope, LOG)) + "\n")
        endings[name] = diagnose_run([str(path)])
    frames = endings["bare"].frames
    assert len(frames) == 2
    assert {name: (one.family, one.line, one.rank, one.frames) for name, one in endings.items()} == dict.fromkeys(
        endings, ("exception", 7, 3, frames)
    )
    assert [name for name, one in endings.items() if not one.text.endswith(LOG[-1])] == []


@pytest.mark.parametrize(
    "head",
    {
        "only before the first line, which a logger prints": "ERROR - root - ",
        "of one process among others": "node-a out: ",
    }.values(),
)
def test_lines_without_the_label_are_read_too(tmp_path, head):
    """Calls below a labelled first line may have no label, and other lines never need one."""
    path = tmp_path / "run.log"
    path.write_text("\n".join([head + LOG[1][9:], *(line[9:] for line in LOG[2:])]) + "\n")
    assert diagnose_run([str(path)]).line == 6
    assert len(diagnose_run([str(path)]).frames) == 2
