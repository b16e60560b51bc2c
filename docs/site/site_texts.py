"""What the site adds to the pages of docs/, by the program itself: the help of each command, what each code means."""

from __future__ import annotations

import re
from textwrap import dedent

from typer.testing import CliRunner

from analysis.cli import COMMANDS, build_app
from analysis.present.views.explain import explain
from logparse.failures.table import failure_words, failures, rows
from logparse.language import speaking, tr

# No text of the help is wrapped at this width.
WIDE = 10_000
_ITEM = re.compile(r"^  (?P<name>\S.*?)(?:\n? {2,}(?P<meaning>\S.*))?$", re.MULTILINE)
_WARNINGS = re.compile(r"^- (`[^:]+`):", re.MULTILINE)
_SIGN = re.compile(r"`[^`]*`|[\\*_\[\]<&]")


def plain(text: str) -> str:
    """``text`` as Markdown that shows it; code stays code."""
    return _SIGN.sub(lambda sign: sign[0] if sign[0][0] == "`" else f"&#{ord(sign[0])};", text)


def anchored(code: str) -> str:
    """The code as a link to itself."""
    return f"[`{code}`](#{code}){{#{code}}}"


def warnings_with_anchors(page: str) -> str:
    """The page of the warnings, where each code has an anchor."""
    return _WARNINGS.sub(lambda item: f"- {re.sub(r'`(.+?)`', lambda code: anchored(code[1]), item[1])}:", page)


def causes(language: str) -> str:
    """What each code of a failure means and what to do, by families: what ``logparse explain`` prints."""
    with speaking(language):
        words = failure_words(language)
        family_of = {code: failure.get("family", code) for code, failure in reversed(failures())}
        signatures: dict[str, list[str]] = {}
        for row in rows("signature"):
            signatures.setdefault(row["remedy"], []).append(row["id"])
        lines = []
        for family, name in words["failure_names"].items():
            lines.append(f"## {name[:1].upper()}{name[1:]}\n")
            lines += [_cause(code, signatures.get(code, ())) for code in family_of if family_of[code] == family]
    return "\n".join(lines)


def _cause(code: str, signatures: list[str] | tuple[()]) -> str:
    shown = explain(code)
    lines = "".join(f" [](){{#{name}}}" for name in signatures)
    # A code without words of its own is its subject.
    subject = "" if shown.subject == code else f" {plain(shown.subject)}"
    return f"{anchored(code)}{lines}{subject}\n:   {plain(shown.text)}\n"


def help_of(*command: str) -> str:
    """What ``--help-all`` of a command prints, each text on one line."""
    width = {"max_content_width": WIDE, "terminal_width": WIDE}
    return CliRunner().invoke(build_app(), [*command, "--help-all"], prog_name="logparse", **width).output


def list_of_commands(language: str) -> str:
    """The commands, each with its line of the help and a link to its page."""
    with speaking(language):
        return "\n".join(f"- [`{name}`](commands/{name}.md): {plain(tr(text))}" for name, text in COMMANDS.items())


def command_pages(language: str) -> dict[str, str]:
    """The help of each command as a page."""
    with speaking(language):
        return {f"commands/{name}.md": f"# logparse {name}\n\n{_page(name)}" for name in COMMANDS}


def _page(*names: str) -> str:
    """The help of a command: what it does, examples, usage, options by groups; then of each command below it."""
    level = "#" * (len(names) + 1)
    examples, usage, *sections = re.split(r"\n(?=\S)", help_of(*names))
    used, _, text = usage.partition("\n")
    code = f"```sh\n{dedent(examples.partition(chr(10))[2]).strip()}\n```\n\n```text\n{used}\n```"
    parts = [plain(dedent(text).strip()), code]
    for section in sections:
        title, _, body = section.partition("\n")
        if title.rstrip(":：") == tr("Commands"):
            below = [item["name"] for item in _ITEM.finditer(body)]
            parts += [f"## {' '.join((*names, name))}\n\n{_page(*names, name)}" for name in below]
        else:
            parts.append(f"{level} {title.rstrip(':：')}\n\n{_items(body)}")
    return "\n\n".join(parts)


def _items(body: str) -> str:
    """A group of options, or names that an option takes."""
    items = list(_ITEM.finditer(body))
    if not any(item["meaning"] for item in items):
        return "`" + "`, `".join(body.replace(",", " ").split()) + "`"
    return "\n".join(f"`{item['name']}`\n:   {plain(item['meaning'] or '')}\n" for item in items)
