"""Send news to a chat or to a command. The address is a secret and is never printed.

A chat takes a body of its own form, see FORMS; which one is known by the host of the address.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from logparse.errors import UsageError, reason_of
from logparse.findings import Note, warning
from logparse.language import tr
from logparse.masking import mask_text
from logparse.texts import map_texts

WebhookForm = Literal["json", "text", "slack", "feishu", "dingtalk", "wecom"]
Report = Callable[[Note], object]
# A chat that does not answer must not hold up the gate, nor a command the watcher.
TIMEOUT_SECONDS = 10
COMMAND_SECONDS = 60
# The bots of these hosts take a form of their own.
HOSTS: Mapping[str, WebhookForm] = {
    "hooks.slack.com": "slack",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
    "oapi.dingtalk.com": "dingtalk",
    "qyapi.weixin.qq.com": "wecom",
}
# What a text becomes; `json` is the whole message, `text` the text alone.
FORMS: Mapping[WebhookForm, Callable[[str], dict[str, Any]]] = {
    "slack": lambda text: {"text": text},
    "feishu": lambda text: {"msg_type": "text", "content": {"text": text}},
    "dingtalk": lambda text: {"msgtype": "text", "text": {"content": text}},
    "wecom": lambda text: {"msgtype": "text", "text": {"content": text}},
}
# Bots answer 200 and say in the body that they refused: the keys of the code, 0 where all is well, and of the reason.
REFUSALS = (("errcode", "errmsg"), ("code", "msg"))
# The longest answer that is read.
MOST_BYTES = 65_536


def check_webhook(url: str | None) -> None:
    """Raises UsageError for anything but an http or https address."""
    if url is not None and not _is_http(url):
        raise UsageError(tr("`--webhook` is not an http or https address"), remedy=tr("check for an unset variable"))


def check_heartbeat(place: str | None) -> None:
    """Raises UsageError for an empty name, and for an address that is neither http nor https."""
    if place is not None and (not place.strip() or ("://" in place and not _is_http(place))):
        raise UsageError(
            tr("--heartbeat is no http or https address and no file"), remedy=tr("check for an unset variable")
        )


def _is_http(url: str) -> bool:
    return urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname is not None


def beat(place: str, report: Report) -> bool:
    """Say that the watcher works: get the address, or touch the file. A failure is a warning."""
    try:
        if _is_http(place):
            with urlopen(Request(place, headers={"User-Agent": "logparse"}), timeout=TIMEOUT_SECONDS):
                return True
        Path(place).touch()
    except (OSError, ValueError, HTTPException) as error:
        report(warning("heartbeat_failed", reason=_why(error)))
        return False
    return True


def form_of(url: str) -> WebhookForm:
    """The form that the bots of the host take; JSON for any other host."""
    return HOSTS.get(urlsplit(url).hostname or "", "json")


def body_of(message: Mapping[str, Any], form: WebhookForm) -> tuple[bytes, str]:
    """The body of ``message``, whose ``text`` is what a chat shows, without secrets; and its type."""
    masked = map_texts(message, mask_text)
    if form == "text":
        return f"{masked['text']}\n".encode(), "text/plain; charset=utf-8"
    document = FORMS[form](masked["text"]) if form in FORMS else masked
    return json.dumps(document, ensure_ascii=False).encode(), "application/json"


def post(url: str, message: Mapping[str, Any], form: WebhookForm | None, report: Report) -> bool:
    """Send ``message``, in the form of the host unless another is given; whether it was accepted.

    A failure is a warning, as the verdict is what counts.
    """
    body, kind = body_of(message, form or form_of(url))
    request = Request(url, body, {"Content-Type": kind, "User-Agent": "logparse"})
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            refusal = _refusal(answer.read(MOST_BYTES))
    except (OSError, ValueError, HTTPException) as error:
        refusal = _why(error)
    if refusal is not None:
        report(warning("webhook_failed", host=urlsplit(url).hostname or "-", reason=refusal))
    return refusal is None


def _why(error: Exception) -> str:
    """Why an address could not be reached."""
    reason = error.reason if isinstance(error, URLError) else error
    return reason_of(reason) if isinstance(reason, OSError) else str(reason)


def _refusal(body: bytes) -> str | None:
    """Why a bot did not accept the message, by its answer; None where it did."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    refused = ((code, reason) for code, reason in REFUSALS if isinstance(answer.get(code), int) and answer[code])
    return next((f"{answer[code]} {mask_text(str(answer.get(reason, '')))}" for code, reason in refused), None)


def run_command(words: Sequence[str], message: Mapping[str, Any], report: Report) -> bool:
    """Run the command ``words`` with ``message`` as JSON on its input; no shell reads it. Whether it ended with 0."""
    text = json.dumps(map_texts(message, mask_text), ensure_ascii=False) + "\n"
    failed: Note | None = None
    try:
        done = subprocess.run(
            words, input=text.encode(), stdout=subprocess.DEVNULL, timeout=COMMAND_SECONDS, check=False
        )
        if done.returncode:
            failed = warning("command_failed", command=words[0], code=done.returncode)
    except subprocess.TimeoutExpired:
        failed = warning("command_timed_out", command=words[0], seconds=COMMAND_SECONDS)
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        failed = warning("command_not_started", command=words[0], reason=reason)
    if failed is not None:
        report(failed)
    return failed is None
