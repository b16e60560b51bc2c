"""The command for scripts of a shell, run by the test's own process: one of its own takes a second to start."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from uuid import uuid4

from helpers import run_logparse

# What stands in the place of the program: it asks, hands over what was said, and ends as the command did.
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({address!r})
    asking.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    asking.shutdown(socket.SHUT_WR)
    with asking.makefile(encoding="utf-8") as answer:
        code, out, err = json.load(answer)
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


@contextmanager
def served_program(folder: Path) -> Iterator[Path]:
    """A program that does what logparse does, in ``folder``; the test waits while a script runs it, one at a time."""
    # A name of its own, without a file: the path of a folder of tests may be longer than a socket's name can be.
    address = f"\0logparse {uuid4()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        thread = Thread(target=_serve, args=(server,))
        thread.start()
        program = folder / "logparse"
        program.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        program.chmod(0o755)
        try:
            yield program
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket) -> None:
    while True:
        try:
            asked, _ = server.accept()
        except OSError:
            return
        with asked, asked.makefile("rwb") as stream:
            arguments, folder, environment = json.load(stream)
            env = {name: value for name, value in environment.items() if not name.startswith("PYTHON")}
            done = run_logparse(*arguments, cwd=Path(folder), **env)
            stream.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode())
