"""Where a printed number is known wrong: each correction knows when it applies, and says so in a note.

Comes in: a ParsedLog and its steps with ``step_time_ms``. Goes out: the steps corrected, and a note where one applied.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from logparse.decode.read_run import ParsedLog
from logparse.decode.values import collected
from logparse.findings import Note, info
from logparse.schema import BEGINNINGS

Correction = Callable[[ParsedLog, pl.DataFrame], tuple[pl.DataFrame, Note | None]]


def divide_sink_time(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """MindFormers 0.2 to 0.6 print the time of a whole sink of steps as ``time``."""
    sinks = _printed_numbers(log, "sink_size")
    if "time" not in log.labels or sinks.is_empty() or (sink := sinks[0]) < 2:
        return steps, None
    return steps.with_columns(step_time_ms=pl.col("step_time_ms") / sink), info("sink_time_divided", n=sink)


# Distances between lines that show what a step consumes.
FEWEST_COUNTS = 2
# A difference that rounding leaves more open is no better than the mean.
COARSE_DIFFERENCE = 0.02


def take_means_apart(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Take apart the mean time of all steps since the start: MindSpeed-MM's example of DeepSeek-OCR2, LiBai.

    A row took its mean times the steps in it, less that of the row before; the rounding grows with their number.
    """
    how = log.format.mean_since_start
    if how is None:
        return steps, None
    marked = with_begins(log, steps)
    step, of_start = pl.col("step"), pl.col("begins").cum_sum()
    n = step - how.left_out
    since_start = n * pl.col("elapsed_time_per_iteration_ms")
    before, reached = (value.shift(1).over(of_start) for value in (n, since_start))
    own = (since_start - reached) / (n - before)
    # A mean that lost digits would give a step less time than none.
    own = pl.when(own > 0).then(own)
    open_ms = how.open_ms * (n + before.fill_null(0)) / (n - before.fill_null(0))
    if how.resumed:
        # The clock of a start from a checkpoint does not include the steps before it.
        times = [pl.coalesce(own, pl.when(step == 1).then(since_start)), open_ms]
    else:
        begun = step.first().over(of_start) <= step.diff().median().over(of_start)
        fine = begun & (open_ms <= COARSE_DIFFERENCE * own)
        times = [pl.when(fine).then(own).otherwise("step_time_ms"), pl.when(fine).then(open_ms)]
    taken = marked.with_columns(step_time_ms=times[0], time_resolution_ms=times[1])
    applied = taken["time_resolution_ms"].is_not_null().any()
    return taken.drop("begins"), info("means_taken_apart") if applied else None


def unmix_second_row(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Megatron core 0.16 to 0.19 print the first iteration at once and keep it in the mean of the second row.

    With n iterations from the first row to the second, the second row is (n - 1) new ones and the first again, so the
    new ones took (n row2 - row1) / (n - 1). It applies only after a start with a slow first row, and if the result is
    nearer the third row than the printed figure is: a later version fixed the mean without changing the line.
    Source: Megatron-LM issue 6237.
    """
    its_own = log.format.name == log.giver_of("timestamp") == "megatron"
    if not its_own or not steps.select((pl.col("timestamp").dt.microsecond() > 0).any()).item():
        return steps, None
    printed, step, begins = pl.col("elapsed_time_per_iteration_ms"), pl.col("step"), pl.col("begins")
    n = step - step.shift(1) + 1
    unmixed = (n * printed - printed.shift(1)) / (n - 1)
    # None where the next row is of another process. Windows over processes would take a third of the analysis.
    third = pl.when(~begins.shift(-1)).then(printed.shift(-1))
    nearer = (unmixed - third).abs() < (printed - third).abs()
    slow_start = printed.shift(1) > 1.1 * unmixed
    applies = begins.shift(1) & ~begins & (n > 1) & (unmixed > 0) & nearer & slow_start
    return _corrected(with_begins(log, steps, files_go_on=True), applies, unmixed, "second_row_unmixed")


def take_first_windows_apart(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """NeMo's timer prints the mean of the last ``buffer_size`` steps, and of the fewer ones after a slow first step.

    Of the n-th step of a start, the mean of n steps is printed: it took n times that, less the n - 1 before it. It
    applies only if the result is nearer than the printed figure to the first mean without the first step.
    Source: NeMo, nemo/utils/timers.py and exp_manager.py (``step_timing_kwargs``).
    """
    if log.format.time_of != "window":
        return steps, None
    sizes = _printed_numbers(log, "buffer_size")
    if sizes.is_empty() or not 1 < (window := sizes[0]) < len(steps):
        return steps, None
    marked = with_begins(log, steps).with_columns(start=pl.col("begins").cum_sum())
    printed, n = pl.col("elapsed_time_per_iteration_ms"), pl.int_range(1, pl.len() + 1).over("start")
    sums = n * printed
    alone = (sums - sums.shift(1)).over("start")
    settled = printed.filter(n == window + 1).first().over("start")
    each = ((pl.col("step").diff() == 1) | pl.col("begins")).all().over("start")
    nearer = (alone > 0) & ((alone - settled).abs() < (printed - settled).abs())
    return _corrected(marked, each & (n > 1) & (n <= window) & nearer, alone, "first_windows_taken_apart")


# Columns that a correction adds for itself.
MARKS = ("begins", "start", "gap", "typical", "span", "clock", "applies")


def _printed_numbers(log: ParsedLog, setting: str) -> pl.Series:
    """The whole numbers that the log prints for ``setting``, the first of them first; what is none is left out."""
    return log.settings.filter(pl.col("name") == setting)["value"].cast(pl.Int64, strict=False).drop_nulls()


def _corrected(marked: pl.DataFrame, applies: pl.Expr, time_ms: pl.Expr, code: str) -> tuple[pl.DataFrame, Note | None]:
    """The rows of ``marked`` with another time where it ``applies``, without marks, and a note of their lines."""
    lines = marked.filter(applies)["line_number"].to_list()
    times = pl.when(applies).then(time_ms).otherwise("step_time_ms")
    steps = marked.with_columns(step_time_ms=times).drop(*MARKS, strict=False)
    return steps, info(code, lines=lines) if lines else None


def ended_by_start(steps: pl.DataFrame, begins: pl.DataFrame) -> list[str]:
    """The files in which a process begins after the last of ``steps``: its first row is in the next file.

    ``begins`` has the places (source, line_number) of beginnings.
    """
    ends = steps.group_by("source").agg(last=pl.col("line_number").max())
    late = begins.join(ends, on="source").filter(pl.col("line_number") > pl.col("last"))
    return late["source"].unique().to_list()


def with_begins(log: ParsedLog, steps: pl.DataFrame, files_go_on: bool = False) -> pl.DataFrame:
    """Add ``begins``: the first row of a file, where the step falls, after settings or an event of a beginning.

    With ``files_go_on`` not the first row of a file that shows no beginning and whose step follows: a log that was cut.
    """
    lines = [log.starts.lazy()]
    if (events := log.records.get("events")) is not None:
        lines.append(events.lazy().filter(pl.col("kind").is_in(BEGINNINGS)).select("source", "line_number"))
    printed = pl.concat(lines).sort("line_number").with_row_index("dump").with_columns(pl.col("dump").cast(pl.Int64))
    dumped = steps.lazy().join_asof(printed, on="line_number", by="source", check_sortedness=False)
    other_file = pl.col("source") != pl.col("source").shift(1)
    dump = pl.col("dump")
    if files_go_on:
        ended = ended_by_start(steps, printed.collect()) if len(log.sources) > 1 else []
        begun = pl.col("source").shift(1).is_in(ended)
        other_file &= dump.is_not_null() | begun | (pl.col("step").diff() <= 0)
        dump = dump.forward_fill()
    begins = other_file | (pl.col("step").diff() <= 0) | (dump.fill_null(-1).diff() != 0)
    return collected(dumped.with_columns(begins=begins.fill_null(True)).drop("dump"))


def shift_utc_stamps(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """MindSpeed-LLM 2.1 stamps step lines in UTC and everything else in local time; bring them to local time.

    Seen as a first step line that is whole hours, at least one, away from the line that training starts.
    Source: MindSpeed-LLM 4b4731f9, 2025-07-02.
    """
    begins = (pl.col("kind") == "training starts") & pl.col("timestamp").is_not_null()
    begun = log.records["events"].filter(begins)
    if begun.is_empty():
        return steps, None
    first = steps[["timestamp", "step_time_ms", "source"]].drop_nulls().head(1)
    if first.is_empty():
        return steps, None
    stamp, time_ms, source = first.row(0)
    # Another node may have another clock, so its line counts only where the file itself has none.
    mine = begun.sort(pl.col("source") != source, maintain_order=True)["timestamp"]
    offset_s = (stamp - mine[0]).total_seconds() - time_ms / 1000
    hours = round(offset_s / 3600)
    if not 1 <= abs(hours) <= 14 or abs(offset_s - hours * 3600) > 600:
        return steps, None
    return steps.with_columns(pl.col("timestamp") - pl.duration(hours=hours)), info("stamps_in_utc", hours=hours)


def mark_vanished_loss(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Megatron-LM before core 0.17 leaves out a loss that is NaN, zero or negative; so does all that forked from it.

    Adds ``loss_vanished`` to such rows.
    """
    if log.format.name != "megatron":
        return steps, None
    skipped = pl.col("skipped_iterations").fill_null(0) > 0
    # The last value of a line: one that is broken before it may have lost its loss there.
    whole = pl.col("nan_iterations").is_not_null()
    vanished = pl.col("loss").is_null() & ~skipped & (whole | ~whole.any())
    bare = steps.select(pl.col("line_number").filter(vanished)).to_series()
    if bare.is_empty() or len(bare) == len(steps):
        return steps, None
    return steps.with_columns(loss_vanished=vanished), info("loss_vanished", n=len(bare), line=bare[0])


def take_skips_apart(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """DeepSpeed's ``skipped=`` counts the updates that were skipped since the start of training, not those of a row.

    The first row of a start has its own count if the training began within it; else its skips are unknown.
    """
    if log.giver_of("skipped_iterations") != "deepspeed" or steps["skipped_iterations"].is_null().all():
        return steps, None
    marked = with_begins(log, steps, files_go_on=True).with_columns(start=pl.col("begins").cum_sum())
    count = pl.col("skipped_iterations")
    before = count.forward_fill().shift(1).over("start")
    row_steps = pl.col("step").shift(-1).over("start") - pl.col("step")
    first = pl.when(pl.col("begins") & (pl.col("step") <= row_steps)).then(count)
    own = pl.coalesce(count - before, first)
    # A count that falls is of another training.
    taken = marked.with_columns(skipped_iterations=pl.when(own >= 0).then(own)).drop("begins", "start")
    return taken, info("skips_taken_apart") if steps["skipped_iterations"].max() else None


def divide_by_printed_steps(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """PaddleOCR and MLX-LM divide the time of a line by the steps of a full interval, also where it covers fewer.

    Such a line ends an epoch or the training; for PaddleOCR the line after it covers fewer steps too.
    """
    if log.format.time_of != "full interval" or len(steps) < 2:
        return steps, None
    marked = with_begins(log, steps).with_columns(gap=pl.when(~pl.col("begins")).then(pl.col("step").diff()))
    printed = _printed_numbers(log, "print_batch_step")
    full = printed[0] if len(printed) else marked["gap"].drop_nulls().mode().max()
    if full is None:
        return steps, None
    short = (pl.col("gap") > 0) & (pl.col("gap") < full)
    return _corrected(marked, short, pl.col("step_time_ms") * full / pl.col("gap"), "short_intervals_divided")


def divide_update_time(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """ESPnet numbers batches and prints the time of an update, which with ``accum_grad`` takes several of them.

    No line prints how many; the stamps of two lines of an epoch show it.
    """
    if log.format.time_of != "update":
        return steps, None
    batches, passed = pl.col("step").diff(), pl.col("timestamp").diff().dt.total_milliseconds()
    same = (pl.col("epoch").diff() == 0) & (passed > 0)
    ratio = (
        with_begins(log, steps)
        .filter(~pl.col("begins"))
        .select((pl.col("step_time_ms") * batches / passed).filter(same))
    )
    median = ratio.to_series().median()
    n = round(median) if isinstance(median, float) else 1
    if n < 2 or abs(median / n - 1) > 0.1:  # type: ignore[operator]
        return steps, None
    return steps.with_columns(step_time_ms=pl.col("step_time_ms") / n), info("update_time_divided", n=n)


def without_placeholder_mfu(_: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """A trainer that does not know the peak of its device prints an MFU of 0 on every line: it measured none."""
    mfu = steps["logged_mfu"]
    if not mfu.count() or (mfu.drop_nulls() != 0).any():
        return steps, None
    return steps.with_columns(logged_mfu=pl.lit(None, pl.Float64)), info("mfu_placeholder")


# A time below this share of what the clock shows, or so many times it, is of no step.
TOO_SHORT, TOO_LONG = 0.5, 1.5


def clock_dispatched_steps(log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """Where the time of a line is that of a dispatch, the clock gives it; the first row of a start has none then.

    JAX returns before the device has done a step: MaxText prints the time of the dispatch while steps are in flight.
    Lines that are printed at once share the time since the line before them. A pause alone makes no time too short.
    """
    if log.format.time_of != "dispatch":
        return steps, None
    marked = with_begins(log, steps).with_columns(start=pl.col("begins").cum_sum())
    done = pl.col("step").diff().over("start")
    passed = pl.col("timestamp").diff().over("start").dt.total_microseconds() / 1000
    timed = marked.with_columns(gap=pl.when(done > 0, passed >= 0).then(passed / done))
    timed = timed.with_columns(typical=pl.col("gap").median().over("start"))
    gap, typical, printed = pl.col("gap"), pl.col("typical"), pl.col("elapsed_time_per_iteration_ms")
    # A trainer whose lines are all further apart does other work between its steps.
    same_pace = (printed.filter(gap.is_not_null()).median().over("start") / typical).is_between(TOO_SHORT, TOO_LONG)
    timed = timed.with_columns(span=(gap >= TOO_SHORT * typical).fill_null(value=True).cum_sum())
    whole = gap.is_not_null().all().over("span")
    timed = timed.with_columns(clock=pl.when(whole, same_pace).then(gap.mean().over("span")))
    clock = pl.col("clock")
    # A line that is written late makes one gap longer and the next one shorter.
    short, long = (
        printed < TOO_SHORT * pl.min_horizontal(clock, typical),
        printed > TOO_LONG * pl.max_horizontal(clock, typical),
    )
    timed = timed.with_columns(applies=(clock.is_not_null() & (short | long)).any().over("span"))
    first = pl.col("begins") & pl.col("applies").any().over("start")
    timed = timed.with_columns(pl.when(first).then(None).otherwise("step_time_ms").alias("step_time_ms"))
    return _corrected(timed, pl.col("applies"), pl.col("clock"), "dispatched_steps_clocked")


def count_from_one(_log: ParsedLog, steps: pl.DataFrame) -> tuple[pl.DataFrame, Note | None]:
    """A trainer that numbers its steps from 0 has done one more at each line, as the samples consumed show: LiBai."""
    rows = steps["step", "consumed_samples"].drop_nulls().unique(maintain_order=True)
    step, done, apart = rows["step"], rows["consumed_samples"], rows["step"].diff()
    # Where each step has a line, the number that the log prints says as much.
    if len(rows) <= FEWEST_COUNTS or apart.median() == 1:
        return steps, None
    each = (done.diff() / apart).drop_nulls()
    if each.n_unique() != 1 or not each[0] > 0 or not ((step + 1) * each[0] == done).all():
        return steps, None
    return steps.with_columns(pl.col("step") + 1), info("counted_from_zero")


CORRECTIONS: tuple[Correction, ...] = (
    take_skips_apart,
    divide_sink_time,
    take_means_apart,
    take_first_windows_apart,
    unmix_second_row,
    shift_utc_stamps,
    mark_vanished_loss,
    divide_by_printed_steps,
    divide_update_time,
    without_placeholder_mfu,
    clock_dispatched_steps,
    # The others know how a trainer numbers its steps.
    count_from_one,
)
