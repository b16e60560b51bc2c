"""Every printer prints every part, and escapes what a log says."""

import io
import re

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from analysis.present.html import html
from analysis.present.markdown import markdown
from analysis.present.parts import Bar, Cell, Heading, Part, Sentence, Sentences, Sparkline, Table
from analysis.present.terminal import print_parts

TABLE = Table(
    ("", "value", "why"),
    (("one", Cell("1.5", "95 %: 1 to 2", "sum"), "short"), ("two", "2.5", "w" * 40)),
    "What it is",
    prose={2},
)
BAR = Bar(40.0, 50.0, 90.0, (70.0, 100.0), "MFU 40 % of the peak", "peak 100 TFLOP/s")
LIST = Sentences((Sentence("trust it less", "warning"), Sentence("by the way", "info"), Sentence("plain words")))


def terminal(*parts: Part) -> str:
    console = Console(file=io.StringIO(), width=80)
    print_parts(console, parts)
    return console.file.getvalue()


def as_html(*parts: Part) -> str:
    return html(parts)


def as_markdown(*parts: Part) -> str:
    return markdown(parts)


@pytest.mark.parametrize("printed", [terminal, as_markdown, as_html])
@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Heading("the whole", "title"), ["the whole"]),
        (Heading("a section"), ["a section"]),
        (Sentence("plain words"), ["plain words"]),
        (LIST, ["trust it less", "by the way", "plain words"]),
        (TABLE, ["What it is", "one", "1.5", "95 %: 1 to 2", "short", "w" * 30]),
        (BAR, ["MFU 40 % of the peak", "peak 100 TFLOP/s"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_printer_says_the_words_of_a_part(printed, part, words):
    said = printed(part)
    assert [word for word in words if word not in said] == []


def test_a_sparkline_is_for_terminals():
    line = Sparkline("time", (1.0, 2.0, 1.0), "ms")
    assert "time, 1.0 to 2.0 ms: " in terminal(line)
    assert (markdown([line]), html([line])) == ("\n", "")


def test_a_warning_is_told_from_what_is_merely_said():
    assert terminal(LIST).splitlines()[:3] == ["! trust it less", "- by the way", "plain words"]
    assert markdown([LIST]).splitlines()[:2] == ["- **trust it less**", "- by the way"]
    assert html([LIST]).count('<li class="warning">') == 1


def test_numbers_stand_to_the_right_and_prose_to_the_left():
    assert "| --- | ---: | --- |" in markdown([TABLE])
    drawn = html([TABLE])
    assert '<td class="sum">1.5 <small>95 %: 1 to 2</small></td>' in drawn
    assert '<th scope="col" class="words">why</th>' in drawn
    assert '<td class="words long">' in drawn


def test_the_bar_is_drawn_to_scale_with_the_shorter_length_on_top():
    drawn = html([BAR])
    places = [drawn.index(f'<span class="{name}" style="{place}"') for name, place in PLACES]
    assert places == sorted(places)
    assert "left:70.0%" not in html([Bar(40.0, None, 90.0, None, "MFU", "peak")])


PLACES = [("band", "left:70.0%;width:30.0%"), ("hfu", "width:50.0%"), ("mfu", "width:40.0%"), ("peak", "left:90.0%")]
HOSTILE = "<img src=x onerror=alert(1)> [a](http://b)"


@pytest.mark.parametrize(
    "part",
    [
        Heading(HOSTILE),
        Sentence(HOSTILE),
        Sentences([Sentence(HOSTILE, "warning")]),
        Table((HOSTILE,), ((Cell(HOSTILE, HOSTILE),),), HOSTILE),
        Bar(1.0, 1.0, 1.0, None, HOSTILE, HOSTILE),
    ],
    ids=lambda part: type(part).__name__,
)
def test_words_of_a_log_stay_words(part):
    assert "<img" not in html([part])
    assert re.findall(r"(?<!\\)[<\[]", markdown([part])) == []


# A table or a list in what was one line, marks of every kind, and what a code host makes of bare words.
MARKS = (
    *("1. one", "- two", "+ three", "--- four", "# five", "> six", "    seven", "| a | b |", "**b** _u_ ~~s~~ `c`"),
    *(
        "[x](javascript:alert(1)) ![i](http://x/p.png)",
        "<script>alert(1)</script>",
        "&lt;b&gt; &#64;",
        "a\r\nb\u2028- c",
    ),
    *(
        "see http://x.example/a www.example.com",
        "mail @someone",
        "\\| x \\`y",
        "$x^2$",
        "```",
        "<!-- c -->",
        "[a]: http://x",
    ),
)


@pytest.mark.parametrize("text", MARKS)
def test_a_markdown_reader_shows_the_words_of_a_log_unchanged(text):
    """The whole of each item and cell is one text without a mark: nothing ends early, and the table stays one."""
    parts = [Sentence(text), Sentence(text, "info"), Table(("", text), (("n", text), ("m", "1"))), Sentence("end")]
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = reader.parse(markdown(parts))
    shown = [[child for child in token.children if child.content] for token in tokens if token.type == "inline"]
    assert {child.type for inline in shown for child in inline} <= {"text", "text_special"}
    texts = ["".join(child.content for child in inline).replace("\u200b", "") for inline in shown]
    words = " ".join(text.split())
    assert texts == [words, words, "", words, "n", words, "m", "1", "end"]
    assert [token.type for token in tokens if token.type.endswith("_open") and token.level == 0] == [
        *("paragraph_open", "bullet_list_open", "table_open", "paragraph_open")
    ]


def test_a_code_host_makes_no_link_and_calls_nobody():
    assert "http://" not in markdown([Sentence("http://x.example")])
    assert "@someone" not in markdown([Sentence("@someone")])
