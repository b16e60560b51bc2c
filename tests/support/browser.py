"""Pages of the report in a headless Chromium, watched for errors, requests and dialogs; and runs to make them of."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cores
import pytest

from analysis.project.choose_options import choose
from analysis.report import render_page
from analysis.run.build import analyze_logs
from analysis.run.run import Run
from logparse.context.dialects import Framework
from logparse.context.run_context import Fact, RunContext
from logparse.decode.versions import Version
from logparse.findings import Origin, info, warning

# Of Chromium's own traffic none is left; the sandbox needs rights that a container has not.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A page is drawn once; to compile its script for speed costs more than it gains.
    "--js-flags=--max-lazy --no-opt --single-threaded",
]


def run_of(
    *logs: Path, name: str | None = None, hw: str | None = "910b3", formula: str = "ascendspeed", **given: Any
) -> Run:
    """A run, the whole way from its files."""
    return analyze_logs([str(log) for log in logs], choose(given, formula=formula, hw=hw), name)


def hostile(run: Run, text: str) -> Run:
    """``run`` with ``text`` for every word that a log can choose."""
    told = {"path": text, "reason": text}
    return replace(
        run,
        log=replace(run.log, name=text, sources=(text,), versions={text: Version(text, text, 1)}),
        framework=Framework(text, None, (info("evidence_flag", name=text),)),
        identified=replace(run.identified, findings=(info("unknown", names=[text]),)),
        context=RunContext({**run.context.facts, "model_name": Fact(text, Origin("config", file=text))}),
        notes=(warning("file_damaged", **told), info("file_damaged", **told)),
    )


def write_page(folder: Path, *runs: Run) -> Path:
    """The page about ``runs`` as a file."""
    path = folder / "report.html"
    path.write_text(render_page(runs), encoding="utf-8")
    return path


@dataclass
class Browser:
    """A browser, and its tabs by what their windows are like: to make one takes as long as to draw a page in it.

    ``drawn`` are those whose page is as it was when it had been drawn.
    """

    chromium: Any
    tabs: dict[str, Any] = field(default_factory=dict)
    drawn: set[str] = field(default_factory=set)

    def window(self, **like: Any) -> Any:
        """A window of its own, with nothing in it."""
        return self.chromium.new_context(**like)

    def tab(self, name: str, **like: Any) -> Any:
        """The tab of that name, in a window like this; a page that is opened in it knows nothing of the one before."""
        if name not in self.tabs:
            self.tabs[name] = self.window(**like).new_page()
        return self.tabs[name]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; the test is skipped, with the reason, where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("no chromium on the path; on Debian: apt-get install chromium")
    with ExitStack() as stack:
        with cores.on_all():
            playwright = stack.enter_context(api.sync_playwright())
            found = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        yield Browser(found)
        found.close()


@dataclass
class Opened:
    """A page that is open, and what it did since: requests, errors, dialogs."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def evaluate(self, expression: str) -> Any:
        """The value of some JavaScript; a promise is waited for."""
        return self.page.evaluate(expression)

    def domain(self, chart: str) -> list[float]:
        """Both ends of a chart's x axis."""
        ends: list[float] = self.evaluate(f"[...logparse.views.get('{chart}').scale('x').domain()]")
        return ends

    def frame(self, chart: str) -> dict[str, float]:
        """Where the frame of a chart is in the window, scrolled there."""
        self.page.locator(f"#chart-{chart}").scroll_into_view_if_needed()
        box: dict[str, float] = self.evaluate(
            f"""(() => {{
                const view = logparse.views.get('{chart}'), [x, y] = view.origin(), pad = view.padding();
                const drawn = document.querySelector('#chart-{chart} canvas, #chart-{chart} svg.marks');
                const {{left, top}} = drawn.getBoundingClientRect();
                return {{x: left + x + pad.left, y: top + y + pad.top, width: view.width(), height: view.height()}};
            }})()"""
        )
        return box

    def drag(self, chart: str, begin: float, end: float) -> None:
        """Drag over a part of a chart, given as shares of its width."""
        frame, mouse = self.frame(chart), self.page.mouse
        middle = frame["y"] + frame["height"] / 2
        mouse.move(frame["x"] + begin * frame["width"], middle)
        mouse.down()
        mouse.move(frame["x"] + (begin + end) / 2 * frame["width"], middle)
        mouse.move(frame["x"] + end * frame["width"], middle)
        mouse.up()

    def settled(self, condition: str) -> None:
        """Wait until some JavaScript is true."""
        self.page.wait_for_function(condition, timeout=5000)


@contextmanager
def opened(
    browser: Browser, path: Path, color_scheme: str = "light", leaves_as_found: bool = False, **window: Any
) -> Iterator[Opened]:
    """Open a page, wait until its charts are drawn, and see at the end that nothing went wrong.

    Whoever ``leaves_as_found`` what it looks at shares the page with all that do, since to draw it takes a second.
    """
    like = {"viewport": {"width": 1180, "height": 900}} | window
    own = {name: how for name, how in like.items() if name != "viewport"}
    name = f"{path} {color_scheme} {like}" if leaves_as_found else f"{own}"
    found, is_drawn = Opened(browser.tab(name, **own)), name in browser.drawn
    # Where the test fails, nobody knows how it left the page.
    browser.drawn.discard(name)
    heard = {
        "request": lambda request: found.requests.append(request.url),
        "pageerror": lambda error: found.errors.append(str(error)),
        "console": lambda said: found.errors.append(said.text) if said.type in ("error", "warning") else None,
        "dialog": lambda dialog: (found.dialogs.append(dialog.message), dialog.dismiss()),
    }
    # As a new window has it, whatever was done to this one.
    found.page.set_viewport_size(like["viewport"])
    found.page.emulate_media(media="null", color_scheme=color_scheme)
    found.page.mouse.move(0, 0)
    for event, listener in heard.items():
        found.page.on(event, listener)
    if is_drawn:
        found.evaluate("scrollTo(0, 0)")
    else:
        found.page.goto(path.as_uri())
        found.evaluate("logparse.ready.then(() => true)")
    yield found
    for event, listener in heard.items():
        found.page.remove_listener(event, listener)
    if not leaves_as_found:
        found.page.goto("about:blank")
    assert found.errors == []
    assert found.dialogs == []
    assert [url for url in found.requests if url != path.as_uri() and not url.startswith(("data:", "blob:"))] == []
    if leaves_as_found:
        browser.drawn.add(name)
