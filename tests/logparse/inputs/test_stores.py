"""URLs of object stores: what is one, what of it may be printed, and what a store said."""

import sys

import pytest

from logparse.errors import UsageError
from logparse.inputs.stores import _escaped, error_text, is_url, open_page, open_store, shown, split_url


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("s3://bucket/a", True), ("https://host/a", True), ("s3:/a", False), ("run=s3://a", False), ("a/b://c", False)],
)
def test_what_is_a_url(text, is_one):
    assert is_url(text) == is_one


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        ("s3://bucket/a?b#c@d", "s3://bucket/a?b#c@d"),
        ("s3://key:secret@bucket/a", "s3://bucket/a"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("https://host/a.log?X-Amz-Signature=secret#x", "https://host/a.log"),
        ("https://user:secret@host/a@b", "https://host/a@b"),
        ("https://token@host/a", "https://host/a"),
        ("runs/a?b", "runs/a?b"),
    ],
)
def test_nothing_secret_is_printed(url, printed):
    assert shown(url) == printed


def test_bucket_and_key():
    assert split_url("s3://bucket/a/b?#.log") == ("s3://bucket", "a/b?#.log")
    assert split_url("s3://bucket") == ("s3://bucket", "")


def test_signs_of_a_url_in_a_key():
    pytest.importorskip("obstore")
    assert open_store("s3://bucket/a#1?b").store.prefix == "a#1?b"
    assert _escaped("https://host/a?b") == "https://host/a?b"


@pytest.mark.parametrize("open_it", [open_store, open_page])
def test_without_obstore_the_remedy_is_to_install_it(monkeypatch, open_it):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(UsageError, match=r"https://host/a\.log needs obstore, which is not installed") as told:
        open_it("https://host/a.log?sig=secret")
    assert told.value.remedy == "pip install 'logparse[cloud]'"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Generic S3 error: Error performing GET http://h/b?sig=secret in 1ms - no\n\nDebug source:\nX",
            "GET http://h/b in 1ms - no",
        ),
        (
            "Error performing GET http://h/b - 403: <?xml?>\n<Error><Message>Access Denied</Message></Error>",
            "Access Denied",
        ),
        (
            "Object not found: Error performing GET http://h/a in 1ms - 404 Not Found: <!DOCTYPE html>",
            "GET http://h/a in 1ms - 404 Not Found",
        ),
        ("Account must be specified", "Account must be specified"),
    ],
)
def test_what_a_store_said(text, told):
    assert error_text(Exception(text)) == told
