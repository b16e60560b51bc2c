"""Does a history on an object store do what one in a folder does? Prints a table; exit code 1 where anything is wrong.

The store is moto, which speaks S3 and checks signatures and rights as S3 does. The story of docs/releases.md is told in
a folder and in a bucket, and both must say the same; 8 recorders write the same runs at once, some of them killed; more
runs are listed than fit on one page of S3; every failure must be a message with a remedy, exit code 2, and come soon.

    python benchmarks/object_store.py
"""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from history_scale import fill
from s3_server import serve

from analysis.history.record_run import Marks, RunOptions, record_logs
from analysis.history.storage import open_storage
from analysis.history.store import History

PROGRAM = str(Path(sys.executable).with_name("logparse"))
LOGS = Path(__file__).parent.parent / "fixtures/releases"
PLACE = "s3://bucket/runs"
RELEASES = ("CANN 8.0.RC1", "CANN 8.0.RC2", "CANN 8.0.RC3")
SIDES = ("--baseline", f"release={RELEASES[0]}", "--candidate", f"release={RELEASES[1]}")
RECORDERS, KILLED = 8, 3
# A page of S3 has 1,000 keys.
RUNS = 1200
# Half a minute, and what starting a program on a busy machine takes.
LONGEST_SECONDS = 90.0

Environment = dict[str, str]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    error: str
    seconds: float


def run(arguments: tuple[str, ...], place: str, environment: Environment) -> Done:
    """One command of the program, with the history at ``place``."""
    begin = time.perf_counter()
    command = [PROGRAM, *arguments, "--history", place]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr, time.perf_counter() - begin)


def recording(number: int, turned: int = 0) -> tuple[str, ...]:
    """The command that records the runs of one release, beginning with another log."""
    logs = sorted(str(log) for log in LOGS.glob(f"8.0.RC{number}-*.log"))
    return ("record", "--each", *logs[turned:], *logs[:turned], "--release", RELEASES[number - 1])


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """The address of a server that gives everybody ``answer``; None for one that never says anything."""
    held = []

    def serve(server: socket.socket) -> None:
        while True:
            try:
                client = server.accept()[0]
            except OSError:
                return
            held.append(client)
            if answer is not None:
                client.recv(2**16)
                client.sendall(answer)
                client.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def tell(name: str, done: Done, wrong: str = "") -> bool:
    """Print a row of the table; whether all is right."""
    said = (done.error or done.out).strip().replace("\n  try:", "; try:").split("\n")
    shown = f"WRONG: {wrong}: {said[-1]}" if wrong else said[0]
    print(f"| {name} | {done.code} | {done.seconds:.1f} | {shown} |", flush=True)
    return not wrong


def story(folder: Path, environment: Environment) -> Iterator[bool]:
    """What the bucket says is what the folder says."""
    run_id = record_logs([str(LOGS / "8.0.RC1-1.log")], RunOptions(), Marks()).run_id
    commands: dict[str, tuple[str, ...]] = {
        "record": recording(1),
        "record again": recording(1),
        "record the next release": recording(2),
        "list": ("history", "list"),
        "list as JSON": ("history", "list", "release=CANN 8.0.RC1", "--json"),
        "show": ("history", "show", run_id[:12]),
        "compare": ("compare", f"release={RELEASES[0]}", f"release={RELEASES[1]}"),
        "gate": ("gate", *SIDES),
        "trend": ("trend",),
        "compact": ("history", "compact"),
        "gate after compact": ("gate", *SIDES),
        "compact again": ("history", "compact"),
        "export": ("history", "export", str(folder / "runs.json"), "--force"),
        "remove": ("history", "remove", run_id[:12]),
        "list without it": ("history", "list"),
        "record it anew": recording(1),
    }
    for name, arguments in commands.items():
        kept, done = (run(arguments, place, environment) for place in (str(folder / "runs"), PLACE))
        wanted = int(name.startswith("gate"))
        alike = (kept.code, timeless(kept.out)) == (done.code, timeless(done.out)) and done.code == wanted
        yield tell(name, done, "" if alike else f"the folder says {timeless(kept.out)!r}")


def timeless(text: str) -> str:
    """Without the time of recording."""
    return re.sub(r"20\d\d-\d\d-\d\d[ T][\d:.]+", "TIME", text)


def recorders(environment: Environment) -> Iterator[bool]:
    """Eight that record the same runs at once; then the same again, without those that were killed."""
    for killed in (KILLED, 0):
        started = [start((*recording(3, number % 5), "--history", PLACE), environment) for number in range(RECORDERS)]
        for process in started[:killed]:
            time.sleep(random.random())
            process.send_signal(signal.SIGKILL)
        codes = [process.wait() for process in started]
        wrong = "" if codes == [-9] * killed + [0] * (RECORDERS - killed) else f"exit codes {codes}"
        done = run(("history", "list"), PLACE, environment)
        wrong = wrong or ("" if done.out.startswith("15 runs") else "not 15 runs")
        yield tell(f"{RECORDERS} recorders at once, {killed} killed; list", done, wrong)
    done = run(("gate", *SIDES[:3], f"release={RELEASES[2]}"), PLACE, environment)
    yield tell("gate of what they recorded", done, "" if done.code == 0 else "no verdict")


def start(arguments: tuple[str, ...], environment: Environment) -> "subprocess.Popen[bytes]":
    """The program, not waited for."""
    return subprocess.Popen([PROGRAM, *arguments], env=environment, stdout=subprocess.DEVNULL)


def pages(environment: Environment) -> Iterator[bool]:
    """More runs than a page of S3 has."""
    place = "s3://bucket/many"
    os.environ.update(environment)
    fill(History(open_storage(place)), RUNS)
    for name, arguments in {"list": "list", "compact": "compact", "list after compact": "list"}.items():
        done = run(("history", arguments), place, environment)
        yield tell(f"{RUNS} runs: {name}", done, "" if done.out.startswith(f"{RUNS} runs") else "not all of them")


def failures(environment: Environment, reader: Environment, folder: Path) -> Iterator[bool]:
    """Each is a message with a remedy, and comes soon. Several at once: most of the time is waiting."""
    refused = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with listener(None) as silent, listener(refused) as busy, ThreadPoolExecutor(8) as pool:
        asked = list(failing(environment, reader, folder, silent, busy))
        found = pool.map(lambda one: run(*one[1:]), asked)
        for (name, *_), done in zip(asked, found, strict=True):
            yield tell(name, done, fault_of(done))


def failing(
    environment: Environment, reader: Environment, folder: Path, silent: str, busy: str
) -> Iterator[tuple[str, tuple[str, ...], str, Environment]]:
    """Name, command, history, environment."""
    listing = ("history", "list")
    every = {
        "record": recording(1),
        "list": listing,
        "show": ("history", "show", "d"),
        "remove": ("history", "remove", "d"),
        "compact": ("history", "compact"),
        "export": ("history", "export", str(folder / "none.csv")),
        "compare": ("compare", SIDES[1], SIDES[3]),
        "gate": ("gate", *SIDES),
        "trend": ("trend",),
    }
    keyless = {name: value for name, value in environment.items() if not name.startswith(("AWS_ACC", "AWS_SEC"))}
    nobody = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    yield "wrong secret: list", listing, PLACE, environment | {"AWS_SECRET_ACCESS_KEY": "wrong"}
    yield "unknown key: record", recording(1), PLACE, environment | {"AWS_ACCESS_KEY_ID": "wrong"}
    yield "no credentials: list", listing, PLACE, keyless | {"AWS_METADATA_ENDPOINT": silent}
    yield "may only read: compact", ("history", "compact"), PLACE, environment | reader
    yield "may only read: remove", ("history", "remove", "8"), PLACE, environment | reader
    yield "http is not allowed: list", listing, PLACE, environment | {"AWS_ALLOW_HTTP": "false"}
    yield "never answers: list", listing, PLACE, environment | {"AWS_ENDPOINT_URL": silent}
    yield "never answers: record", recording(1), PLACE, environment | {"AWS_ENDPOINT_URL": silent}
    yield "status 503: list", listing, PLACE, environment | {"AWS_ENDPOINT_URL": busy}
    yield "no such host: list", listing, PLACE, environment | {"AWS_ENDPOINT_URL": "http://no.such.host.invalid"}
    yield "wrong scheme: list", listing, "ftp://bucket/runs", environment
    yield "no bucket in the URL: list", listing, "s3://", environment
    for name, arguments in every.items():
        yield f"no such bucket: {name}", arguments, "s3://nowhere/runs", environment
        yield f"nobody listens: {name}", arguments, PLACE, environment | nobody


def fault_of(done: Done) -> str:
    """What is wrong with how a failure was told."""
    faults = {
        "exit code": done.code != 2,
        "a traceback": "Traceback" in done.error,
        "no remedy": "\n  try:" not in done.error,
        "too long a message": len(done.error.splitlines()) > 3,
        "too late": done.seconds > LONGEST_SECONDS,
    }
    return ", ".join(name for name, there in faults.items() if there)


def main() -> int:
    """All of it on one server."""
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = f"{os.environ.get('NO_PROXY', '')},127.0.0.1"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "LC_"))}
    with tempfile.TemporaryDirectory() as place, serve() as server:
        environment = plain | {"LANG": "C.UTF-8", "COLUMNS": "100"} | server.writer
        print("| what | exit code | s | said |\n| --- | ---: | ---: | --- |")
        right = [*story(Path(place), environment), *recorders(environment), *pages(environment)]
        right += failures(environment, server.reader, Path(place))
    print(f"\n{sum(right)} of {len(right)} are as they must be")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
