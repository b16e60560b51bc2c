"""Object stores by their URLs, through obstore: objects by key, and in words what went wrong.

Credentials, endpoint and proxies come from the environment, as obstore reads it. An object is put whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast

import regex

from logparse.errors import InputError, UsageError
from logparse.extras import missing_extra
from logparse.language import tr
from logparse.light_dataclass import dataclass, field

HTTP = ("http://", "https://")
# A store that fails or cannot be reached is asked again for so long; obstore's own three minutes are long to wait for.
RETRY_TIMEOUT = timedelta(seconds=20)
Act = Literal["read", "write", "remove"]


def is_url(text: str) -> bool:
    """Whether ``text`` names a place on an object store, such as s3://bucket/run.log."""
    scheme, sign, _ = text.partition("://")
    return bool(sign) and scheme.isalnum()


def shown(url: str) -> str:
    """``url`` without what may hold a secret: user, password, and the query with its signature."""
    if url.startswith(HTTP):
        return regex.sub(r"(?<=://)[^/?#]*@|[?#].*", "", url)
    return regex.sub(r"(?<=://)[^/]*:[^/]*@", "", url)


@dataclass(frozen=True)
class Store:
    """An object store below ``place``, its URL. Keys are relative to that.

    Every method raises InputError where the store refuses, or does not answer.
    """

    store: Any = field(compare=False, repr=False)
    place: str

    def name(self, key: str) -> str:
        """The URL of ``key``, as it may be printed."""
        return f"{shown(self.place).rstrip('/')}/{key}" if key else shown(self.place)

    def list(self, folder: str) -> list[dict[str, Any]]:
        """``path``, ``size`` and ``e_tag`` of all objects below ``folder``, in no order; obstore asks page by page."""
        import obstore

        def listed() -> list[dict[str, Any]]:
            return [dict(item) for page in obstore.list(self.store, folder or None) for item in page]

        return cast("list[dict[str, Any]]", self.attempt(listed, "read", folder))

    def has_any(self) -> bool:
        """Whether there is any object below ``place``; obstore asks for the first page alone."""
        import obstore

        return cast("bool", self.attempt(lambda: any(page for page in obstore.list(self.store)), "read", ""))

    def get(self, key: str, begin: int = 0, e_tag: str | None = None, gone: bool = False) -> Any:
        """The answer of the store: ``meta``, and the bytes from ``begin`` on as they come.

        With ``e_tag`` an object that has changed is refused, with ``gone`` a FileNotFoundError is the caller's.
        """
        import obstore

        options: obstore.GetOptions = {}
        if begin:
            options["range"] = {"offset": begin}
        if e_tag is not None:
            options["if_match"] = e_tag
        return self.attempt(lambda: obstore.get(self.store, key, options=options), "read", key, gone)

    def read(self, key: str) -> bytes:
        """A whole object. Raises FileNotFoundError where it is gone."""
        import obstore

        return bytes(self.attempt(lambda: obstore.get(self.store, key).bytes(), "read", key, gone=True))

    def put_at(self, key: str) -> datetime:
        """When it was put, by the store's clock. Raises FileNotFoundError where it is gone."""
        import obstore

        meta = self.attempt(lambda: obstore.head(self.store, key), "read", key, gone=True)
        return cast("datetime", meta["last_modified"])

    def put(self, key: str, data: bytes | Path) -> None:
        """Seen whole or not at all, also where obstore sends it in parts."""
        import obstore

        self.attempt(lambda: obstore.put(self.store, key, data), "write", key)

    def put_first(self, key: str, data: bytes) -> None:
        """Put ``data`` where nothing is under ``key``."""
        import obstore

        def put() -> None:
            with suppress(obstore.exceptions.AlreadyExistsError):
                obstore.put(self.store, key, data, mode="create")

        self.attempt(put, "write", key)

    def remove(self, key: str) -> None:
        """S3 itself says nothing of a key that is not there; where another store does, that is no error."""
        import obstore

        def removed() -> None:
            try:
                obstore.delete(self.store, key)
            except FileNotFoundError:
                return

        self.attempt(removed, "remove", key)

    def attempt(self, call: Callable[[], Any], act: Act, key: str, gone: bool = False) -> Any:
        """What ``call`` returns. With ``gone`` a FileNotFoundError is the caller's; else it means a missing bucket."""
        try:
            return call()
        except Exception as error:
            if gone and isinstance(error, FileNotFoundError):
                raise
            raise refusal(act, self.name(key), error) from error


def open_store(place: str) -> Store:
    """The store at ``place``, a URL such as s3://bucket/runs.

    Raises UsageError where obstore is missing, or the URL cannot be used.
    """
    return Store(_open(place, lambda store, how: store.from_url(_escaped(place), retry_config=how)), place)


def open_page(url: str) -> Store:
    """One object by its http or https URL, under the empty key. A signed URL is requested unchanged.

    Raises as ``open_store``.
    """
    # A log may take longer than the half minute after which obstore ends a request, and few servers give parts.
    client = {"allow_http": url.startswith("http://"), "timeout": "1 day", "read_timeout": "30 seconds"}
    return Store(
        _open(url, lambda store, how: store.HTTPStore.from_url(url, client_options=client, retry_config=how)), url
    )


def _open(place: str, open_with: Callable[[Any, dict[str, timedelta]], Any]) -> Any:
    try:
        import obstore.store
    except ImportError as error:
        raise missing_extra(shown(place), "obstore", "cloud") from error
    try:
        return open_with(obstore.store, {"retry_timeout": RETRY_TIMEOUT})
    except Exception as error:
        problem = tr("cannot use {place}: {reason}", place=shown(place), reason=error_text(error))
        raise UsageError(problem, remedy=tr("give a URL such as s3://bucket/runs")) from error


def _escaped(place: str) -> str:
    """``place`` with the signs that end the path of a URL escaped, because in a key they are signs like others."""
    return place if place.startswith(HTTP) else place.replace("?", "%3F").replace("#", "%23")


def refusal(act: Act, path: str, error: Exception, where: str | None = None) -> InputError:
    """The error that explains why ``act`` failed on ``path``."""
    problem = {
        "read": tr("cannot read {path}: {reason}", path=path, reason=error_text(error)),
        "write": tr("cannot write {path}: {reason}", path=path, reason=error_text(error)),
        "remove": tr("cannot remove {path}: {reason}", path=path, reason=error_text(error)),
    }[act]
    remedy = tr("check the URL, the credentials and the network connection")
    return InputError(problem, where=where, remedy=remedy)


def error_text(error: Exception) -> str:
    """The text of a store's error, without obstore's dump of it, and without the query, which may hold a secret."""
    text = str(error).partition("\n\nDebug source")[0]
    message = regex.search(r"<Message>([^<\n]+)", text)
    first = text.partition("\n")[0].rpartition("Error performing ")[2].partition(": <")[0]
    return message[1] if message else regex.sub(r"\?\S+", "", first).rstrip(": ")


def split_url(url: str) -> tuple[str, str]:
    """The place of the bucket, and the key in it, of a URL that is not http."""
    scheme, _, path = url.partition("://")
    bucket, _, key = path.partition("/")
    return f"{scheme}://{bucket}", key
