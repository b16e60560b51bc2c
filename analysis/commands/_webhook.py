"""Send the news of a night to a chat. The address is a secret and is never printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, Literal
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from logparse.errors import UsageError, reason_of
from logparse.findings import Note, warning
from logparse.language import tr

WebhookForm = Literal["json", "text"]
TYPES: dict[WebhookForm, str] = {"json": "application/json", "text": "text/plain; charset=utf-8"}
# A chat that does not answer must not hold up the gate.
TIMEOUT_SECONDS = 10


def check_webhook(url: str | None) -> None:
    """Raises UsageError for anything but an http or https address."""
    if url is not None and not (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname):
        raise UsageError(tr("--webhook is not an http or https address"), remedy=tr("check for an unset variable"))


def post(url: str, message: dict[str, Any], form: WebhookForm, report: Callable[[Note], object]) -> None:
    """Send ``message`` as JSON, or its text. A failure is a warning: the verdict is what counts."""
    body = json.dumps(message, ensure_ascii=False) if form == "json" else f"{message['text']}\n"
    request = Request(url, body.encode(), {"Content-Type": TYPES[form], "User-Agent": "logparse"})
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS):
            return
    except (OSError, ValueError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        text = reason_of(reason) if isinstance(reason, OSError) else str(reason)
        report(warning("webhook_failed", host=urlsplit(url).hostname or "-", reason=text))
