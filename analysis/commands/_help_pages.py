"""What the help of each command shows: its examples, the group of each option, and what only --help-all lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from logparse.language import msg, tr

COMMON, MISSING, OUTPUT, ADVANCED = (
    msg("Common options"),
    msg("Missing from the log"),
    msg("Output"),
    msg("Advanced options"),
)
GROUPS = (COMMON, MISSING, OUTPUT, ADVANCED)

# Two for each command, without the name of the command. The key is the command as typed after `logparse`.
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "": ("analyze run.log --hw 910b3", "compare release-a/ release-b/"),
    "analyze": ("run.log --hw 910b3", "--each logs/ -o results"),
    "watch": ("run.log --hw 910b3", "run.log --once --state watch.json --fail-on hang,nan"),
    "diagnose": ("run.log", "logs/ --json"),
    "export": ("run.log --to tensorboard -o tb", "run.log --to mlflow -o http://127.0.0.1:5000"),
    "merge": ("results", "results -o merged --tables csv"),
    "baselines": ("--model llama2-7b", "--publisher ModelLink --json"),
    "estimate": (
        "--model llama2-13b --hw a100 --devices 8 --seq-length 4096",
        "--from run.log --tokens 2e12",
    ),
    "formulas": ("run.log", "run.log --model llama2-7b --json"),
    "formats": ("torchtitan", "suggest run.log -o mine.toml"),
    "formats show": ("", "torchtitan"),
    "formats test": ("torchtitan run.log", "mine.toml run.log --json"),
    "formats suggest": ("run.log", "run.log -o mine.toml"),
    "hardware": ("910", "h100 --json"),
    "models": ("qwen 7b", "llama2-7b --json"),
    "record": ("run.log --release 8.0.RC2 --hw 910b3", "--each logs/ --release 8.0.RC2 --history runs"),
    "compare": ("old.log new.log --hw 910b3", "release=8.0.RC1 release=8.0.RC2 --history runs"),
    "gate": ("--baseline old/ --candidate new/", "--history runs --strict"),
    "bisect": ("good/ bad/", "release=8.0.RC1 release=8.0.RC2 --history runs"),
    "trend": ("--history runs --metric mfu", "--history runs --by week -o trend"),
    "history": ("list --history runs", "show 3f2a --history runs"),
    "history list": ("--history runs", "'release=8.0.RC1,world_size=8' --history runs"),
    "history regressions": ("--history runs", "--history runs --json"),
    "history show": ("3f2a", "3f2a --history runs"),
    "history remove": ("3f2a", "3f2a 77c0 --history runs"),
    "history compact": ("", "--history runs"),
    "history export": ("runs.csv", "runs.parquet --select release=8.0.RC1"),
    "history exclude": ("3f2a --reason 'slow disk'", "release=8.0.RC1 --reason 'wrong image'"),
    "history include": ("3f2a", "release=8.0.RC1"),
    "history annotate": ("3f2a 'new switch'", "3f2a ''"),
    "history label": ("3f2a team=vision", "3f2a team=vision node=n17"),
    "history accept": ("3f2a --reason 'longer sequences'", "3f2a --reason '#118' --until 2026-03-01"),
    "config": ("", "--hw 910b3 --json"),
    "self-check": ("", "--json"),
    "mcp": ("", "--root /data/logs"),
}

# Groups of options by the name of their parameter; those of QUANTITIES say their group themselves.
_NAMES = {
    COMMON: "hw,model,require,baseline,each,history,release,label,candidate,threshold,metric,by,select,since,devices,"
    "tp,pp,dp,from_log,tokens,days,utilisation,dtype,publisher,file,reason,issue,loss,until,until_release,strict,fail_on,as_of,"
    "backtest,webhook,webhook_as,every,once,until,on_alarm,heartbeat,state,root,to,experiment",
    MISSING: "config,log_format,dialect,version_of,peak_tflops",
    OUTPUT: "out,as_json,compact,fields,as_markdown,quiet,verbose,price,no_color,tables,charts,chart_format,theme,"
    "force,lang,where,sort,anonymise,jsonl,time_zone,help",
}
GROUP_OF: Mapping[str, str] = {name: group for group, names in _NAMES.items() for name in names.split(",")}
# Only --help-all lists these, and the shape flags.
DETAILED = frozenset(
    (
        "peak_basis",
        "split",
        "dialect",
        "all_files",
        "no_draft",
        "jobs",
        "theme",
        "chart_format",
        "baseline_file",
        "zero",
        "sequence_parallel",
        "flash_attention",
        "dropout",
        "network_gbits",
        "vpp",
        "ep",
        "cp",
        "warmup",
        "tables",
        "no_color",
        "as_of",
        "backtest",
        "webhook",
        "webhook_as",
        "charts",
        "price",
        "engine",
        "heartbeat",
    )
)
# Quantities that --help lists all the same, as most logs without settings need them.
SHOWN_QUANTITIES = frozenset(("world_size", "global_batch_size", "seq_length", "precision"))


def listed_names(command: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The titles and the names that ``--help-all`` of ``command`` adds, as errors about a name lead there."""
    # Imported here, as other help does not wait for polars.
    from analysis.batch.run_table import RUNS_COLUMNS
    from analysis.compare.comparability import FIELDS, UNKNOWN
    from analysis.flops import all_formulas
    from analysis.metrics import DISTANCES, JUDGED
    from analysis.run.checks.targets import figures
    from logparse.context.dialects import dialect_keys

    if command == "analyze":
        yield tr("Figures for --require"), list(figures())
        yield tr("Columns for --sort and --where"), [column.name for column in RUNS_COLUMNS]
        yield tr("Formulas for --formula"), list(all_formulas())
        yield tr("Dialects for --dialect"), dialect_keys()
    if command in ("analyze", "compare", "gate", "trend", "bisect"):
        yield tr("Metrics"), list(JUDGED)
    if command in ("compare", "gate"):
        yield tr("Figures for --require"), list(DISTANCES)
    if command == "compare":
        yield tr("Fields for --allow"), [*FIELDS, UNKNOWN]


def is_detailed(name: str, is_quantity: bool) -> bool:
    """Whether only --help-all lists the option of the parameter ``name``."""
    return name not in SHOWN_QUANTITIES if is_quantity else name in DETAILED
