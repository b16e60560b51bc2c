"""The form of what is sent to a chat, which gate and watch ask for."""

from __future__ import annotations

from typing import Annotated

import typer

from analysis.export.senders import WebhookForm

WebhookAs = Annotated[
    WebhookForm | None,
    typer.Option("--webhook-as", help="Form of the message; default: that of the chat, by the host, else JSON."),
]
