"""The frames of an analysed run: what the stages of ``analysis.run`` add to the rows, and the tables they end in.

``logparse.schema`` has the columns that a log is read into; each name is defined once: here, there or in ``metrics``.
"""

from __future__ import annotations

from analysis.metrics import COMPUTED, RATED
from logparse.schema import BOOL, DECODED_COLUMNS, FLOAT, INT, TEXT, TIME, Column

# What later stages add to each row.
COMPUTED_COLUMNS = (
    Column(
        "step_time_ms",
        FLOAT,
        "ms",
        "time that this row stands for; differs from the printed one where that is known wrong",
    ),
    Column(
        "time_resolution_ms", FLOAT, "ms", "by how much rounding may put step_time_ms off; null where the log prints it"
    ),
    Column("segment", INT, "", "number of the start this row belongs to, counted from 0"),
    Column("lineage", INT, "", "starts with one number continue each other"),
    Column("iterations", INT, "steps", "steps that the row's time is the mean of"),
    Column("copied", BOOL, "", "another rank printed the same step"),
    Column("replayed", BOOL, "", "an earlier start had done the step"),
    Column("replayed_steps", INT, "steps", "steps of the row that an earlier start had done"),
    Column("useful_steps", INT, "steps", "steps of the row whose update was made and kept"),
    Column("update_is_nan", BOOL, "", "the loss is NaN, infinite or no longer printed, or the gradient norm is NaN"),
    Column("counted", BOOL, "", "the row enters the metrics"),
    Column("excluded_reason", TEXT, "", "code of why the row does not count"),
    *(Column(metric.column, FLOAT, metric.unit, metric.meaning) for metric in COMPUTED),
)

STEP_COLUMNS = DECODED_COLUMNS + COMPUTED_COLUMNS
UNITS = {c.name: c.unit for c in STEP_COLUMNS}

# The three named rates, and where the time went.
RATE_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("rate", TEXT, "", "steady, delivered, all steps, all-in"),
    Column("step_time_ms", FLOAT, "ms", "time per useful step"),
    Column("step_time_low_ms", FLOAT, "ms", "lower end of its 95 % interval"),
    Column("step_time_high_ms", FLOAT, "ms", "upper end of its 95 % interval"),
    Column("steps", INT, "steps", "useful steps it covers"),
    *(Column(metric.column, FLOAT, metric.unit, metric.meaning) for metric in RATED),
    Column("logged_tflops_per_second_per_device", FLOAT, "TFLOP/s/p", "by the log's own count of work"),
)

_SPENT = (
    Column("seconds", FLOAT, "s", "time"),
    Column("share", FLOAT, "ratio", "of the clock, or of all step lines where there is no clock"),
)

TIME_BREAKDOWN_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("part", TEXT, "", "code of what the time was spent on"),
    *_SPENT,
)

BADPUT_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("type", TEXT, "", "badput type of Google's goodput library"),
    *_SPENT,
)

GOODPUT_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("hours", FLOAT, "h", "since the first stamp"),
    Column("ettr", FLOAT, "ratio", "productive time over the clock so far"),
    Column("ettr_of_hour", FLOAT, "ratio", "the same over the hour before"),
)

SEGMENT_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("source", TEXT, "", "file of the first row"),
    Column("line_number", INT, "", "line of the first row"),
    Column("segment", INT, "", "number of the start, counted from 0"),
    Column("lineage", INT, "", "starts with one number continue each other"),
    Column("first_timestamp", TIME, "", "clock of the first row"),
    Column("last_timestamp", TIME, "", "clock of the last row"),
    Column("first_step", INT, "step", "step of the first row"),
    Column("last_step", INT, "step", "step of the last row"),
    Column("rows", INT, "", "step lines"),
    Column("warm_up_rows", INT, "", "rows left out as warm-up"),
    Column("replayed_steps", INT, "steps", "steps that an earlier start had done"),
    Column("lost_steps", INT, "steps", "steps done here that a later start did again"),
    Column("step_time_sum_ms", FLOAT, "ms", "time the step lines add up to"),
)

RANK_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("source", TEXT, "", "file of the rank"),
    Column("rank", INT, "", "its number, where the name of the file tells it"),
    Column("node", INT, "", "its node, where the name of the file tells it"),
    Column("steps", INT, "steps", "steps that count and that another rank printed too"),
    Column("step_time_ms", FLOAT, "ms", "median time of these steps"),
    Column("step_time_p90_ms", FLOAT, "ms", "their 90th percentile"),
    Column("slowest_share", FLOAT, "ratio", "of these steps: those in which no other rank took as long"),
    Column("behind_share", FLOAT, "ratio", "of these steps: those more than 2 % above the median of all ranks"),
    Column("clock_ahead_seconds", FLOAT, "s", "median by which its stamps are later than the median of all ranks"),
)

SUMMARY_COLUMNS = (
    Column("run", TEXT, "", "name of the run"),
    Column("metric", TEXT, "", "name of the metric"),
    Column("unit", TEXT, "", "its unit"),
    Column("median", FLOAT, "", "median over the steps that count"),
    Column("mean", FLOAT, "", "mean; of a rate: total work over total time"),
    Column("p10", FLOAT, "", "10th percentile"),
    Column("p90", FLOAT, "", "90th percentile"),
    Column("n", INT, "rows", "rows that count and have a value"),
)
