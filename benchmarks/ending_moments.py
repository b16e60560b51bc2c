"""End each writing command at 40 of its file operations, by SIGTERM and SIGKILL, and let files grow no further.

After each try the same command, with --force where it takes that, must succeed, and no record may be damaged:
``python benchmarks/ending_moments.py --moments 40``. A process that has imported everything forks for each try.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from helpers import megatron_log

from analysis import cli
from logparse.__main__ import main

# What changes a folder; "open" counts where it is for writing.
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
# The id of a recorded run; to `history label` a condition is a label.
RUN = "RUN"
COMMANDS = {
    "analyze": "analyze a.log -o out --no-charts --force",
    "analyze, a page": "analyze a.log -o out --chart-format json --force",
    "analyze, each run": "analyze --each a.log b.log -o out --no-charts --force",
    "merge": "merge shards -o out --force",
    "estimate": "estimate --model llama2-7b --hw a100 --devices 8 --seq-length 64 --micro-batch-size 1 -o out --force",
    "record, with a key": "record c.log --release 3 --history h --anonymise",
    "record": "record c.log --release 3 --history h",
    "compact": "history compact --history h",
    "remove": "history remove release=1 --history h",
    "exclude": "history exclude release=1 --reason slow --history h",
    "annotate": "history annotate release=1 slow --history h",
    "label": f"history label {RUN} node=7 --history h",
    "export": "history export all.parquet --history h --force",
    "compare": "compare a.log b.log -o out --force",
    "trend": "trend --history h -o out --force",
    "gate": "gate --baseline a.log --candidate b.log -o out --force",
    "draft": "formats suggest a.log -o mine.toml --force",
}
# Bytes that a file may have where the disk is taken for full.
SIZES = (0, 1, 100, 512, 1000, 2000, 4096, 8000, 12_000, 16_384, 20_000, 40_000)
# Endings that are right after a signal or on a full disk.
ENDINGS = {0, 1, 2, 3, -signal.SIGTERM, -signal.SIGKILL}


def in_child(command: str, folder: Path, before: Callable[[], object] = lambda: None) -> tuple[int, str]:
    """Run ``command`` in a fork, after ``before``; its exit code, negative for a signal, and what it printed."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            os.chdir(folder)
            sys.argv = ["logparse", *command.split()]
            code = 70
            try:
                before()
                main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read().decode(errors="replace")


def watch(act: Callable[[int], object]) -> None:
    """Call ``act`` with its number before each operation that changes a file."""
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in CHANGES:
            count += 1
            act(count)

    sys.addaudithook(hook)


def operations(command: str, folder: Path) -> int:
    """How many file operations an undisturbed ``command`` has."""
    counted = folder / "count"
    file = os.open(counted, os.O_RDWR | os.O_CREAT)
    code, said = in_child(command, folder, lambda: watch(lambda n: os.pwrite(file, b"%09d" % n, 0)))
    os.close(file)
    assert code in (0, 1), (command, code, said)
    return int(counted.read_bytes())


def faults_of(command: str, folder: Path, end: tuple[int, str]) -> list[str]:
    """What is wrong in ``folder`` after ``command`` was disturbed and ended so."""
    code, said = end
    faults = [] if code in ENDINGS and "internal error" not in said else [f"ended with {code}: {said[-300:]}"]
    if code == -signal.SIGTERM:
        faults += [f"left {path}" for path in folder.rglob("*") if ".logparse-unfinished" in path.name]
    again, said = in_child(command, folder)
    # What was removed is removed once.
    if again not in (0, 1) and "no run of the history" not in said:
        faults.append(f"again: {again}: {said[-300:]}")
    code, said = in_child("history list --history h", folder)
    if code or re.search("damaged|left out|deleted", said):
        faults.append(f"history: {code}: {said[-300:]}")
    return faults


def prepared(folder: Path) -> Path:
    """Three logs, a history of two of them, and two shards of an analysis."""
    for name, steps in (("a", 20), ("b", 21), ("c", 22)):
        # Rows of one run may not be on both sides of a comparison.
        (folder / f"{name}.log").write_text(megatron_log(steps).replace("(ms): 10", f"(ms): 1{steps - 20}"))
    for name, release in (("a", 1), ("b", 2)):
        assert in_child(f"record {name}.log --release {release} --history h", folder)[0] == 0
    for n in range(2):
        assert in_child(f"analyze --each a.log b.log -o shards --shard {n + 1}/2 --no-charts", folder)[0] == 0
    return folder


def recorded_run(folder: Path) -> str:
    """The id of a run of the history in ``folder``."""
    code, said = in_child("history list --history h --json", folder)
    assert code == 0, said
    return str(json.loads(said)["runs"][0]["run_id"])


def tries(total: int, moments: int) -> list[tuple[str, Callable[[], object]]]:
    """The disturbances of a command of ``total`` operations."""
    chosen = sorted({1 + n * (total - 1) // max(moments - 1, 1) for n in range(moments)})
    signals = [
        (f"{sign.name} at {at}", lambda at=at, sign=sign: watch(lambda n: n == at and os.kill(os.getpid(), sign)))
        for sign in (signal.SIGTERM, signal.SIGKILL)
        for at in chosen
    ]
    return [*signals, *((f"{size} bytes a file", lambda size=size: fill(size)) for size in SIZES)]


def fill(size: int) -> None:
    """Let no file grow beyond ``size``, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def try_command(name: str, command: str, moments: int, ready: Path) -> tuple[int, list[str]]:
    """The number of tries, and the faults."""
    faults: list[str] = []
    endings: Counter[int] = Counter()
    with tempfile.TemporaryDirectory() as place:

        def fresh() -> Path:
            shutil.rmtree(place)
            return Path(shutil.copytree(ready, place))

        disturbances = tries(operations(command, fresh()), moments)
        for what, disturb in disturbances:
            folder = fresh()
            end = in_child(command, folder, disturb)
            endings[end[0]] += 1
            faults += [f"{name}, {what}: {fault}" for fault in faults_of(command, folder, end)]
    print(f"{name:16} tries {len(disturbances):3} faults {len(faults):3} endings {dict(endings)}", flush=True)
    return len(disturbances), faults


def run(arguments: Sequence[str] | None = None) -> int:
    """Try all commands; the exit code is 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--only", choices=COMMANDS, action="append", help="this command alone; repeatable")
    given = parser.parse_args(arguments)
    os.environ.update(COLUMNS="200", LANG="C.UTF-8", LOGPARSE_DEBUG="1")
    for name in cli.COMMANDS:
        cli._imported(name)
    with tempfile.TemporaryDirectory() as place:
        ready = prepared(Path(place))
        run_id, chosen = recorded_run(ready), given.only or list(COMMANDS)
        results = [try_command(name, COMMANDS[name].replace(RUN, run_id), given.moments, ready) for name in chosen]
    for _, faults in results:
        print(*faults[:5], sep="\n")
    return int(any(faults for _, faults in results))


if __name__ == "__main__":
    sys.exit(run())
