"""The documentation site: every link leads somewhere, nothing is loaded from elsewhere, and no page is left out."""

import pytest
import regex
from build_site import LINK, build, navigation
from check_site import problems
from helpers import ROOT, run_logparse, run_shown
from pymdownx.slugs import slugify
from site_picture import COLUMNS, PICTURES, arguments, picture
from site_texts import causes, command_pages, help_of, warnings_with_anchors

from analysis.cli import COMMANDS
from analysis.present.views.explain import every_code, explain
from logparse.language import LANGUAGES, speaking

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("logparse/*/README.md"), *ROOT.glob("logparse/*/*/*.md")]
START = {"en": DOCS / "README.md", "zh": DOCS / "zh/README.md"}
# A page in which a link to each kind of file is right or wrong.
BROKEN = """<h1 id="top">T</h1><a href="#top"></a><a href="other.html#there"></a><a href="https://example.org/"></a>
<a href="#nowhere"></a><a href="other.html#gone"></a><a href="lost.html"></a><img src="lost.png"><link href="a.css">
<script src="//example.org/a.js"></script><p style="background: url(https://example.org/b.png)">"""


def without_blocks(text):
    return regex.sub(r"^```.*?^```$", "", text, flags=regex.DOTALL | regex.MULTILINE)


def anchors(page):
    """What a link to a page can name: headings, as a repository and the site write them, and marks."""
    text = without_blocks(page.read_text(encoding="utf-8"))
    slug = slugify(case="lower")
    titles = regex.findall(r"^#+ (.+)$", text, regex.MULTILINE)
    shown = (regex.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", title) for title in titles)
    return {slug(title, "-") for title in shown} | set(regex.findall(r'<a id="([^"]+)">', text))


def wrong_links(page):
    for match in LINK.finditer(without_blocks(page.read_text(encoding="utf-8"))):
        target = page.parent / match["path"]
        anchor = (match["anchor"] or "#")[1:]
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {match[0]}"


def test_every_link_of_a_page_leads_somewhere():
    assert len(PAGES) > 30
    assert [wrong for page in PAGES for wrong in wrong_links(page)] == []


def test_links_within_a_page_lead_somewhere():
    links = {page: regex.findall(r"\]\(#([^)]+)\)", without_blocks(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert [(page.name, link) for page, named in links.items() for link in named if link not in anchors(page)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_lists_every_page(language):
    folder = START[language].parent
    listed = str(navigation(START[language].read_text(encoding="utf-8"), ()))
    assert [page.name for page in folder.glob("*.md") if f"'{page.name}'" not in listed] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_commands_of_the_first_page_run(language, tmp_path):
    text = START[language].read_text(encoding="utf-8")
    (tmp_path / "run.log").symlink_to(ROOT / "fixtures/megatron/core-v0.12-llama2-7b/run.log")
    commands = regex.findall(r"^```sh\n(.*)\n```$", text, regex.MULTILINE)
    assert len(commands) == 2
    # The second one says what the first one could not.
    done = run_shown(commands[1], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "MFU" in done.stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_is_of_what_is_printed(language, update_goldens):
    printed = run_logparse(*arguments(language), cwd=ROOT, COLUMNS=str(COLUMNS)).stdout
    drawn = picture(printed, language)
    if update_goldens:
        PICTURES[language].write_text(drawn, encoding="utf-8")
    assert drawn == PICTURES[language].read_text(encoding="utf-8")


def test_a_picture_without_one_of_its_parts_is_refused():
    with pytest.raises(ValueError, match=r"change site_picture\.toml"):
        picture("another screen", "en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_an_anchor_and_the_text_of_explain(language):
    page = causes(language) + warnings_with_anchors((DOCS / "warnings.md").read_text(encoding="utf-8"))
    assert [code for code in every_code() if page.count(f"{{#{code}}}") != 1] == []
    with speaking(language):
        shown = explain("device_memory")
    # Codes of single lines have an anchor without a text of their own.
    assert f"{{#device_memory}} {shown.subject}\n:   {shown.text}\n" in regex.sub(r" \[\]\(\)\{#[^}]+\}", "", page)


def test_every_option_of_a_command_is_on_its_page():
    pages = command_pages("en")
    assert len(pages) == len(COMMANDS)
    for name in ("analyze", "history"):
        options = set(regex.findall(r"--[a-z][\w-]+", help_of(name)))
        assert [option for option in options if option not in pages[f"commands/{name}.md"]] == []
    assert "## history accept" in pages["commands/history.md"]


def test_what_is_wrong_with_a_site_is_found(tmp_path):
    (tmp_path / "index.html").write_text(BROKEN)
    (tmp_path / "other.html").write_text('<p id="there">')
    (tmp_path / "a.css").write_text('@import "https://example.org/c.css"; p { background: url("data:x") }')
    found = [problem.partition(": ")[2] for problem in problems(tmp_path)]
    assert sorted(found) == [
        "loads //example.org/a.js",
        "loads https://example.org/b.png",
        "loads https://example.org/c.css",
        "no #nowhere",
        "no lost.html",
        "no lost.png",
        "no other.html#gone",
    ]


def test_the_chinese_pages_name_the_rows_of_the_screen_and_have_their_own_punctuation():
    rows = regex.findall(r"^\| (.+?) \| ", (DOCS / "zh/first-screen.md").read_text(encoding="utf-8"), regex.MULTILINE)
    catalogue = (ROOT / "logparse/languages/zh.toml").read_text(encoding="utf-8")
    assert len(rows) == 16
    assert [row for row in rows[2:] if f'= "{row}' not in catalogue] == []
    for page in (DOCS / "zh").glob("*.md"):
        text = regex.sub(r"\]\([^)]*\)|`[^`]*`", "", without_blocks(page.read_text(encoding="utf-8")))
        assert regex.findall(r"\p{Han}[,;:!?(]|[,;!?]\p{Han}", text) == []


@pytest.mark.slow
def test_the_site_is_whole_and_needs_no_network(tmp_path):
    assert build(tmp_path / "site") == []
    assert {"report.html", "index.html"} <= {page.name for page in (tmp_path / "site/gallery").rglob("*.html")}
    from browser import chromium

    with chromium() as browser:
        tab = browser.tab("site")
        requests, errors = [], []
        tab.on("request", lambda request: requests.append(request.url))
        tab.on("pageerror", lambda error: errors.append(str(error)))
        for page, words, found in (
            ("index.html", "copy_ahead", "Warnings"),
            ("zh/index.html", "显存不足", "失败原因一览"),
        ):
            tab.goto((tmp_path / "site" / page).as_uri())
            tab.keyboard.press("Control+k")
            tab.keyboard.type(words)
            tab.get_by_role("listbox").get_by_text(found).first.wait_for()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
