"""Codes to sentences in both languages: fields in their forms, lists, findings inside findings; none without words."""

import ast
import re
import string
from datetime import datetime
from functools import cache
from typing import Any, get_args

import pytest
from helpers import ROOT

from analysis.present.words import JOINED, describe_origin, evidence_text, fill, say, word, words
from analysis.present.words.forms import FORMS
from analysis.run.rows import exclusion_reasons as reasons
from logparse.context.dialects import Framework
from logparse.context.printed_sizes import BATCH_OF_CONSUMED, BATCH_OF_RATE, BATCH_OF_RUN, CODES, LENGTH_OF_CONSUMED
from logparse.context.relations import DERIVATIONS
from logparse.findings import Note, Origin, OriginKind, flag, info, warning
from logparse.language import LANGUAGES, speaking

each_language = pytest.mark.parametrize("language", LANGUAGES)
LOG = Origin("log", line=8)
OF_A_FILE = Origin("log", "logs/a.log", 8)
TP_AND_PP = (("tp", 2), ("pp", 4))
SEVEN = info("known_quantity", name="dp", value=7, origin=LOG)


# A note as a sentence.


ANNOTATION_COLUMNS = [
    (
        info("sink_time_divided", n=4),
        "'time' of this MindFormers version covers a sink of 4 steps; it was divided by 4",
    ),
    (
        info("first_windows_taken_apart", lines=[2, 3]),
        "the timer prints the mean of several steps; the first ones after a start are taken apart, from line 2, 3",
    ),
    (
        info("second_row_unmixed", lines=[2, 31, 60]),
        "Megatron core 0.16 to 0.19 counts the first iteration again in the second row; removed from line 2, 31, 60",
    ),
    (
        info("stamps_in_utc", hours=-8),
        "timestamps of step lines differ by -8 h from the lines around them, probably UTC; converted to the clock of "
        "those",
    ),
    (
        info("loss_vanished", n=1, line=3),
        "1 rows have no loss although no update was skipped (line 3): the loss is NaN, zero or negative",
    ),
    (
        warning("file_damaged", path="run.log.gz", reason="Compressed file ended"),
        "run.log.gz is truncated or damaged (Compressed file ended); the part before it is used",
    ),
    (
        warning("other_format_left_out", n=7, name="mindspore"),
        "7 lines of the format 'mindspore' were ignored; to read these instead, pass --format mindspore",
    ),
    (
        warning("setting_has_two_values", name="world_size", first="8", origin=LOG, other="16", place=OF_A_FILE),
        "world_size is 8 (log line 8) and 16 (log line 8 of a.log); the first is used for the whole run",
    ),
    (
        warning("product_no_multiple", whole=SEVEN, product=3, parts=[SEVEN]),
        "dp 7 (log line 8) is not a multiple of 3 = dp 7 (log line 8)",
    ),
    (info("warm_up_as_asked", n=3), "warm-up: the first 3 rows of each start (--warmup)"),
    (
        info("warm_up_of_start", start=1, n=2, slowest_ms=46211.4, settled_ms=6773.5),
        "2 rows of start 1, up to 46,211 ms (median afterwards 6,774 ms)",
    ),
    (
        warning("stamp_damaged", value=datetime(2027, 3, 1, 8, 0, 4), source="a.log", line=50),
        "a.log, line 50: timestamp 2027-03-01 08:00:04 is out of order; ignored",
    ),
    (
        warning("copy_behind", name="b.log", seconds=28_800.4),
        "b.log has the steps, losses and times of another file, with timestamps 8:00:00 earlier; it is treated as "
        "another rank; for another run, analyze it alone",
    ),
    (
        info("stalls_as_often_as_saves", n=5, longer_ms=500.4, period=20),
        "5 stalls, in the median 500 ms longer than a typical step, every 20 steps, the interval of checkpoint saves",
    ),
    (
        info("stalls_several", n=6, longer_ms=1234.0, steps=[1, 20, 31, 44, 58, 70]),
        "6 stalls, in the median 1,234 ms longer than a typical step, at steps 1, 20, 31, 44, 58 ...",
    ),
    (
        info("pace_changes", change=0.0512, step=101),
        "step time changes by +5.1 % around step 101: the median covers two levels or a drift",
    ),
    (
        warning("lines_overruled", name="seq_length", value=64, origin=flag("--seq-length"), printed=[4096, 4096]),
        "seq_length 64 (--seq-length) is used, but the step lines print 4096",
    ),
    (
        warning("above_peak", metric="hfu", share=1.0234, peak_tflops_per_second=353.8944, flags=["--dtype", "--hw"]),
        "HFU is 102.3 % of 353.894 TFLOP/s, above the peak: check --dtype, --hw, the device count, the model shape and "
        "the step time",
    ),
    (
        warning("hfu_is_a_range", setting="recompute_method block", low=0.3512, high=0.4682),
        "HFU is between 35.1 % and 46.8 %: the setting recompute_method block does not specify what is recomputed; "
        "TFLOP/s excludes recomputation; pass --recompute or --recomputed-layers",
    ),
    (
        warning("recompute_not_understood", setting="recompute_modules mhc", least=0.0, most=1 / 3),
        "0 % to 33 % of the model's work is recomputed: the setting recompute_modules mhc does not specify it; "
        "TFLOP/s excludes recomputation; pass --recompute or --recomputed-layers",
    ),
    (
        warning(
            "printed_rate_differs",
            figure="logged_tokens_per_second",
            printed=201824.0,
            ours=25228.0,
            ratio=8.0,
            cause=info("model_parallel_counted", sizes=[info("named_value", name=n, value=v) for n, v in TP_AND_PP]),
        ),
        "tokens/s: the log prints 201,824, 8 times the computed 25,228: devices that share a sample are counted as if"
        " each had its own (tp 2 x pp 4)",
    ),
    (
        warning(
            "printed_share_differs",
            figure="logged_mfu",
            printed=0.2122,
            ours=0.4247,
            ratio=0.5,
            cause=info("divided_by_own_other", peak=1979.0, ours=989.4, kinds=["bf16 sparse", "fp8"]),
        ),
        "MFU: the log prints 21.22 %, 0.5 times the computed 42.47 %: divided by 1,979 TFLOP/s, the peak for bf16 "
        "sparse, fp8; the peak of this run is 989.4",
    ),
    (
        info("several_causes", causes=[info("rate_divided_again", n=8), info("seconds_for_ms")]),
        "several causes are possible, none is proven: the rate of one device is divided by 8 devices again; or "
        "seconds are treated as milliseconds, as in the BigScience code of 2021-12 and 2022-01",
    ),
    (
        info("no_known_cause_of_samples", ours=4, implied=1024),
        "cause unknown; with a batch of 1024 instead of 4 both agree: check --global-batch-size, and what the log's "
        "timer leaves out",
    ),
    (
        warning("time_damaged", value=50.0, source="a.log", line=110),
        "a.log, line 110: step time 50 ms is invalid; row ignored",
    ),
]


@pytest.mark.parametrize(("note", "text"), ANNOTATION_COLUMNS, ids=[note.code for note, _ in ANNOTATION_COLUMNS])
def test_a_note_in_english(note, text):
    assert say(note) == text


def test_a_note_in_chinese():
    with speaking("zh"):
        assert say(info("loss_vanished", n=1, line=3)) == (
            "1 行没有 loss，但参数更新未跳过（第 3 行）：loss 为 NaN、零或负数"
        )
        told = warning("setting_has_two_values", name="x", first="8", origin=LOG, other="16", place=OF_A_FILE)
        assert say(told) == "x 有两个值：8（日志第 8 行）和 16（a.log 第 8 行）；整个任务采用前者"


def test_findings_inside_findings_are_said_in_the_same_language():
    lacking = info("unknown_but_both", names=["a", "b"], flags=["--a"], others=["b"])
    note = warning("flops_rate_not_computed", formula="palm", unknown=lacking)
    assert say(note) == (
        "TFLOP/s/p by palm not computed: a, b unknown; pass --a and set b in a --config file, or pass --model"
    )
    sides = [info("known_quantity", name=n, value=v, origin=LOG) for n, v in (("dp", 3), ("tp", 8))]
    whole = info("known_quantity", name="world_size", value=64, origin=flag("--world-size"))
    product = warning("product_wrong", whole=whole, product=24, parts=sides)
    assert say(product) == "world_size 64 (--world-size) is not 24 = dp 3 (log line 8) x tp 8 (log line 8)"
    with speaking("zh"):
        assert say(product) == "world_size 64（--world-size）不等于 24 = dp 3（日志第 8 行） x tp 8（日志第 8 行）"


def test_what_is_none_is_said():
    note = warning("setting_changed_at_restart", name="num_experts", before=8, origin_before=LOG, after=None)
    fields = {**note.fields, "origin_after": Origin("not set")}
    assert say(Note(note.code, note.level, fields)) == (
        "num_experts changes from 8 (log line 8) to None (not set) at a restart; each start uses its own"
    )


def test_a_field_that_is_lacking_or_has_no_such_form_fails():
    with pytest.raises(KeyError, match="line"):
        say(info("loss_vanished", n=1))
    with pytest.raises(ValueError, match="format code"):
        say(info("stamps_in_utc", hours="eight"))


@pytest.mark.parametrize("table", ["notes", "derivations", "origins", "reasons", "parts", "rates"])
@each_language
def test_an_unknown_code_fails(language, table):
    with speaking(language), pytest.raises(KeyError, match="no_such_code"):
        word(table, "no_such_code")


def test_an_unknown_code_fails_wherever_it_stands():
    with pytest.raises(KeyError, match="no_such_code"):
        say(info("no_such_code"))
    with pytest.raises(KeyError, match="no_such_code"):
        describe_origin(Origin("derived", rule="no_such_code"))
    with pytest.raises(KeyError, match="no_such_code"):
        say(info("rows_of_reason", n=1, reason="no_such_code"))


# Lists.


def test_a_list_is_shown_with_commas_or_with_its_sign():
    note = info("layout_kept", log="a.log", flags=["--tp 2", "--pp 4"])
    assert say(note) == "kept from the layout of a.log: --tp 2 --pp 4"
    sizes = [info("named_value", name=name, value=value) for name, value in (("a", 1), ("b", 2))]
    assert say(info("shape_kept", log="a.log", sizes=sizes)) == "kept from the model shape of a.log: a 1, b 2"
    starts = [info("warm_up_never_settled", start=1, n=2, slowest_ms=3.0), info("warm_up_more_starts", n=4)]
    assert say(info("warm_up_found", starts=starts)) == "warm-up: 2 rows of start 1, up to 3 ms; 4 more starts"
    assert say(info("warm_up_found", starts=starts[1:])) == "warm-up: 4 more starts"


@pytest.mark.parametrize(("sign", "text"), [("", "1, 2, 3"), (".1f", "1.0, 2.0, 3.0"), ("product", "1 x 2 x 3")])
def test_every_part_of_a_list_has_the_form(monkeypatch, sign, text):
    monkeypatch.setitem(words("en")["notes"], "made_up", "{values:" + sign + "}")
    assert fill("notes", "made_up", {"values": (1, 2, 3)}) == text
    assert fill("notes", "made_up", {"values": ()}) == ""


def test_every_part_of_a_list_is_a_code_of_the_table(monkeypatch):
    monkeypatch.setitem(words("en")["notes"], "made_up", "{found:reasons}")
    assert fill("notes", "made_up", {"found": [reasons.STALL, reasons.WARM_UP]}) == "stall, warm-up"


# Forms.


@pytest.mark.parametrize(
    ("form", "value", "english", "chinese"),
    [
        ("span", 86_400, "1 d 0 h", "1 天 0 小时"),
        ("span", 200_000.0, "2 d 8 h", "2 天 8 小时"),
        ("span", 86_399, "24 h 0 min", "24 小时 0 分"),
        ("span", 3_600, "1 h 0 min", "1 小时 0 分"),
        ("span", 3_599.4, "59 min 59 s", "59 分 59 秒"),
        ("span", 59.4, "59 s", "59 秒"),
        ("first3", [1, 2, 3], "1, 2, 3", "1, 2, 3"),
        ("first3", [1, 2, 3, 4], "1, 2, 3 ...", "1, 2, 3 ..."),
        ("first5", [], "", ""),
        ("range", [16, 16], "16", "16"),
        ("range", [16, 32], "16 to 32", "16 ~ 32"),
        ("clock", 28_800.0, "8:00:00", "8:00:00"),
        ("clock", -61.6, "0:01:02", "0:01:02"),
        ("gb", 2_345_000_000, "2.35", "2.35"),
        ("gb", 1_234_567_890_123, "1,234.57", "1,234.57"),
        ("rate", 201824.4, "201,824", "201,824"),
        ("rate", 0.0061591, "0.0061591", "0.0061591"),
        ("said", "matrix", "matrix", "矩阵"),
        ("said", "of no catalogue", "of no catalogue", "of no catalogue"),
    ],
)
def test_a_form(form, value, english, chinese):
    assert FORMS[form](value) == english
    with speaking("zh"):
        assert FORMS[form](value) == chinese


def test_no_form_has_the_name_of_a_table_or_a_sign():
    assert not {*FORMS} & {*JOINED}
    assert not {*FORMS, *JOINED} & {*words("en")}


# Origins.


ORIGINS = [
    (LOG, "log line 8", "日志第 8 行"),
    (OF_A_FILE, "log line 8 of a.log", "a.log 第 8 行"),
    (Origin("log", line=8, rule="bf16 True"), "log line 8: bf16 True", "日志第 8 行：bf16 True"),
    (Origin("log", "logs/a.log", 8, "bf16 True"), "log line 8 of a.log: bf16 True", "a.log 第 8 行：bf16 True"),
    (Origin("step lines"), "every step line", "每条步日志行"),
    (flag("--world-size"), "--world-size", "--world-size"),
    (Origin("model", rule="llama2-7b"), "--model llama2-7b", "--model llama2-7b"),
    (Origin("environment", rule="LOGPARSE_HW"), "LOGPARSE_HW", "LOGPARSE_HW"),
    (Origin("config", "jobs/job.toml", 3), "jobs/job.toml, line 3", "jobs/job.toml 第 3 行"),
    (Origin("config", "jobs/job.toml"), "config file jobs/job.toml", "配置文件 jobs/job.toml"),
    (Origin("derived", rule="moe_layers_of_pattern"), "derived: moe_layer_freq", "推算：moe_layer_freq"),
    (Origin("assumed"), "assumed", "假定"),
    (Origin("appearance"), "inferred from the log format", "由日志格式推断"),
    (Origin("not set"), "not set", "未设置"),
    (Origin("text", rule="by hand"), "by hand", "by hand"),
]


@pytest.mark.parametrize(("origin", "english", "chinese"), ORIGINS, ids=[english for _, english, _ in ORIGINS])
def test_an_origin(origin, english, chinese):
    assert describe_origin(origin) == english
    with speaking("zh"):
        assert describe_origin(origin) == chinese


def test_every_kind_of_origin_is_tried():
    assert {origin.kind for origin, _, _ in ORIGINS} == set(get_args(OriginKind))


def test_evidence_is_joined():
    seen = (info("evidence_setting", name="noop_layers"), info("evidence_label", name="TFLOPs"))
    assert evidence_text(Framework("x", None, seen)) == "setting 'noop_layers' and label 'TFLOPs'"
    assert evidence_text(Framework(None, None, (info("evidence_none"),))) == "nothing in the log identifies it"
    assert evidence_text(Framework("x", None, (info("evidence_flag", name="--dialect"),))) == "--dialect"
    with speaking("zh"):
        assert evidence_text(Framework("x", None, seen)) == "配置项 'noop_layers' 和 标签 'TFLOPs'"


# The tables, in every language.


def fields(template: str) -> set[tuple[str, str]]:
    """Name and form of each field. A number's form may differ by language."""
    return {
        (name, form if form in {*FORMS, *JOINED, *words("en")} else "")
        for _, name, form, _ in string.Formatter().parse(template)
        if name is not None and form is not None
    }


LEVELS = [info("level_of_pace", first=step, last=step + 9, ms=1000.0 + step) for step in (1, 11)]


def value_for(form: str) -> Any:
    """A value that a field of this form takes: a code of the table, or of some values the first that fits."""
    if form in words("en"):
        return next(iter(words("en")[form]))
    return next(value for value in (7, ["A3"], "A3", datetime(2026, 3, 1), [[1, 2]], LEVELS) if takes(form, value))


def takes(form: str, value: Any) -> bool:
    try:
        if form in JOINED:
            return isinstance(value, list)
        return bool(FORMS[form](value) if form in FORMS else format(value, form))
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


@each_language
def test_every_code_of_every_table_is_said(language):
    """Each has the fields it has in English, and words around them."""
    with speaking(language):
        for table, templates in words("en").items():
            assert set(words(language)[table]) == set(templates), table
            for code, template in templates.items():
                assert fields(words(language)[table][code]) == fields(template), code
                forms = {name: form for _, name, form, _ in string.Formatter().parse(template) if name is not None}
                values = {name: value_for(form or "") for name, form in forms.items()}
                assert fill(table, code, values).strip(), code


@cache
def nodes() -> list[ast.AST]:
    """All that is written in the code."""
    files = [f for package in ("logparse", "analysis") for f in (ROOT / package).rglob("*.py")]
    return [node for f in files for node in ast.walk(ast.parse(f.read_text(encoding="utf-8")))]


def pattern(node: ast.AST) -> str | None:
    """A literal as a regular expression; where parts are filled in, anything stands."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [part.value if isinstance(part, ast.Constant) else None for part in parts]
    if not all(text is None or (isinstance(text, str) and text.replace("_", "").isalpha()) for text in texts):
        return None
    # Less than a word tells nothing.
    told = all(texts) or any(text and "_" in text and len(text) > 4 for text in texts)
    return "".join(text or ".+" for text in texts) if told and texts else None


def codes_of_notes() -> list[ast.expr]:
    """What is given first to ``info``, ``warning`` and ``Note``."""
    calls = [node for node in nodes() if isinstance(node, ast.Call) and node.args]
    return [call.args[0] for call in calls if getattr(call.func, "id", "") in ("info", "warning", "Note")]


def test_every_code_that_the_program_says_has_words():
    made = {code for node in codes_of_notes() if (code := pattern(node))}
    assert len(made) > 40
    known = words("en")["notes"]
    assert [code for code in made if not any(re.fullmatch(code, name) for name in known)] == []


def test_no_note_has_words_in_vain():
    made = re.compile("|".join({code for node in nodes() if (code := pattern(node))}))
    assert [code for code in words("en")["notes"] if not made.fullmatch(code)] == []


@each_language
def test_every_rule_of_derivation_has_words(language):
    rules = {rule.code for rule in DERIVATIONS} | {
        BATCH_OF_RATE,
        BATCH_OF_RUN,
        BATCH_OF_CONSUMED,
        LENGTH_OF_CONSUMED,
        *CODES.values(),
    }
    assert set(words(language)["derivations"]) == rules


@each_language
def test_every_reason_has_words(language):
    codes = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert set(words(language)["reasons"]) == codes
