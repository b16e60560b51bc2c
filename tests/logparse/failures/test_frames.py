"""The calls of the traceback above an exception: where it was raised, and from which line of one's own code."""

from dataclasses import replace

import pytest

from analysis.present.parts import ScreenRows
from analysis.present.views.ending import ending_parts
from logparse.decode.read_run import diagnose_run
from logparse.failures.frames import Frame, frames_above

OWN = Frame("train.py", 12, "main", "trainer.fit(data)", own=True)
LIBRARY = Frame("torch/nn/modules/conv.py", 549, "_conv_forward", "return F.conv2d(", own=False)
BEGIN = "Traceback (most recent call last):"
CALL_OF_OWN = ['  File "/home/a/train.py", line 12, in main', "    trainer.fit(data)"]
CALL_OF_LIBRARY = [
    '  File "/env/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 549, in _conv_forward',
    "    return F.conv2d(",
    "           ^^^^^^^^^",
]
OTHER = Frame("transformers/modeling_qwen2.py", 262, "forward", "states = self.self_attn(", own=False)
CALL_OF_OTHER = [
    '  File "/env/lib/python3.11/site-packages/transformers/modeling_qwen2.py", line 262, in forward',
    "    states = self.self_attn(",
]
CALL_THAT_PASSES_ON = [
    '  File "/env/lib/python3.11/site-packages/accelerate/utils.py", line 20, in wrapper',
    "    return self.call(*args, **kwargs)",
]
PYTHON = Frame("os.py", 679, "__getitem__", "raise KeyError(key) from None", own=False)
CALL_OF_PYTHON = ['  File "/usr/lib64/python3.9/os.py", line 679, in __getitem__', "    raise KeyError(key) from None"]
BOX = [
    "╭───── Traceback (most recent call last) ─────╮",
    "│ /home/a/train.py:12 in main                 │",
    "│                                             │",
    "│    11 │   data = load()                     │",
    "│ ❱  12 │   trainer.fit(data)                 │",
    "│    13 │   save()                            │",
    "╰─────────────────────────────────────────────╯",
]


@pytest.mark.parametrize(
    ("lines", "frames"),
    {
        "own code and the library that it calls": ([BEGIN, *CALL_OF_OWN, *CALL_OF_LIBRARY], (OWN, LIBRARY)),
        "own code that failed itself": ([BEGIN, *CALL_OF_OWN], (OWN,)),
        "own code that another file of one's own called": (
            [
                *(BEGIN, '  File "/home/a/launch.py", line 3, in run', "    main()"),
                *('  File "/home/a/decorate.py", line 9, in inner', "    return func(*args, **kwargs)", *CALL_OF_OWN),
            ],
            (Frame("launch.py", 3, "run", "main()", own=True), OWN),
        ),
        "libraries alone": ([BEGIN, *CALL_OF_LIBRARY], (LIBRARY,)),
        "another traceback above": ([BEGIN, *CALL_OF_OWN, "KeyError: 'a'", "", BEGIN, *CALL_OF_LIBRARY], (LIBRARY,)),
        "no traceback": (["epoch 1", "epoch 2"], ()),
        "a traceback that ended before": ([BEGIN, *CALL_OF_OWN, "queue.Full"], ()),
        "a line between the traceback and the exception": ([BEGIN, *CALL_OF_OWN, "epoch 1"], ()),
        "a stack that a program prints": (["Stack (most recent call last):", *CALL_OF_OWN], ()),
        "lines that lost their blanks": ([text.strip() for text in [BEGIN, *CALL_OF_OWN]], (OWN,)),
        "two tracebacks at once without a prefix": ([BEGIN, BEGIN, *CALL_OF_LIBRARY, *CALL_OF_OWN], ()),
        "a call whose code is that of another process": (
            [BEGIN, BEGIN, *CALL_OF_OWN, '  File "/home/a/train.py", line 12, in main', "    save()"],
            (replace(OWN, code=None),),
        ),
        "the same traceback of two processes at once": ([BEGIN, BEGIN, *CALL_OF_OWN, *CALL_OF_OWN], (OWN,)),
        "a library on Windows": (
            [
                *('  File "D:\\work\\train.py", line 12, in main', "    trainer.fit(data)"),
                *('  File "D:\\env\\lib\\json\\decoder.py", line 340, in decode', "    obj = f(s)"),
            ],
            (OWN, Frame("json/decoder.py", 340, "decode", "obj = f(s)", own=False)),
        ),
        "a box of rich": (BOX, (OWN,)),
        "a call over several lines": (
            [BEGIN, "  File ", '"/home/a/train.py", ', "line 12, in main", "    trainer.fit(data)"],
            (OWN,),
        ),
        "lines copied from an editor": ([f"{n:3} {text}" for n, text in enumerate([BEGIN, *CALL_OF_OWN], 98)], (OWN,)),
        "code of which Python finds no file": ([BEGIN, CALL_OF_OWN[0]], (replace(OWN, code=None),)),
        "another library that calls the one that raised": (
            [BEGIN, *CALL_OF_OTHER, *CALL_THAT_PASSES_ON, *CALL_OF_LIBRARY],
            (OTHER, LIBRARY),
        ),
        "Python's own library below another one": (
            [BEGIN, *CALL_OF_OWN, *CALL_OF_OTHER, *CALL_OF_PYTHON],
            (OWN, OTHER),
        ),
        "Python's own library alone": ([BEGIN, *CALL_OF_PYTHON], (PYTHON,)),
        "what Cython compiled": (
            ['  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status'],
            (Frame("pyarrow/error.pxi", 92, "pyarrow.lib.check_status", None, own=False),),
        ),
        "what torch.compile wrote": (
            ['  File "/tmp/torchinductor_a/x7/c3.py", line 5, in call', "    f()"],
            (Frame("torchinductor_a/x7/c3.py", 5, "call", "f()", own=False),),
        ),
    }.values(),
)
def test_the_calls_of_a_traceback_are_read(lines, frames):
    assert frames_above(lines, "ValueError: a") == frames


def test_lines_of_other_processes_are_left_out():
    own = [f"[rank1]: {text}" for text in [BEGIN, *CALL_OF_OWN]]
    other = [f"[rank2]: {text}" for text in [BEGIN, *CALL_OF_LIBRARY]]
    assert frames_above([*own[:2], *other, own[2]], "[rank1]: ValueError: a") == (OWN,)


@pytest.mark.parametrize("prefix", ["[default{}]:", "{}: ", "(Worker pid=70{}) "])
def test_prefixes_tell_processes_apart(prefix):
    own = [prefix.format(3) + text for text in [BEGIN, *CALL_OF_OWN]]
    other = [prefix.format(5) + text for text in [BEGIN, *CALL_OF_LIBRARY]]
    mixed = [line for pair in zip(own, other, strict=False) for line in pair]
    assert frames_above(mixed, prefix.format(3) + "ValueError: a") == (OWN,)


@pytest.mark.parametrize(
    "code", ["os.environ['WANDB_API_KEY'] = '{}'", 'setattr(cfg, "password", "{}")', "wandb.login('{}')", "token='{}'"]
)
def test_no_secret_in_a_line_of_code_is_shown(code):
    secret = "S3cretPw99abcdef"
    (call,) = frames_above([BEGIN, CALL_OF_OWN[0], "    " + code.format(secret)], "ValueError: a")
    assert secret not in call.code
    assert "***" in call.code


def screen_of(tmp_path, *lines):
    path = tmp_path / "run.log"
    path.write_text("\n".join(lines))
    ending = diagnose_run([str(path)])
    (rows,) = (part for part in ending_parts(ending) if isinstance(part, ScreenRows))
    return ending, [(row.label.strip(), row.clauses[0]) for row in rows.rows]


def test_the_screen_shows_where_a_cause_was_raised_also_on_a_last_line_without_newline(tmp_path):
    ending, rows = screen_of(tmp_path, BEGIN, *CALL_OF_OWN, *CALL_OF_LIBRARY, "RuntimeError: shapes differ")
    assert ending.frames == (OWN, LIBRARY)
    assert ("raised in", "torch/nn/modules/conv.py, line 549, in _conv_forward: return F.conv2d(") in rows
    assert ("called in", "train.py, line 12, in main: trainer.fit(data)") in rows
