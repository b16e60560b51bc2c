"""What is sent to a chat or a command: the form of each host, no secret, and a warning where it is refused."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from analysis.export.senders import beat, body_of, check_heartbeat, check_webhook, form_of, post, run_command
from analysis.present.words import say
from logparse.errors import UsageError

MESSAGE = {"text": "run: hang", "code": "hang"}
HOSTS = {
    "https://hooks.slack.com/services/T0/B0/x": {"text": "run: hang"},
    "https://open.feishu.cn/open-apis/bot/v2/hook/x": {"msg_type": "text", "content": {"text": "run: hang"}},
    "https://open.larksuite.com/open-apis/bot/v2/hook/x": {"msg_type": "text", "content": {"text": "run: hang"}},
    "https://oapi.dingtalk.com/robot/send?access_token=x": {"msgtype": "text", "text": {"content": "run: hang"}},
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x": {"msgtype": "text", "text": {"content": "run: hang"}},
    "https://ci.example.com/hook": MESSAGE,
}


@pytest.mark.parametrize("url", HOSTS)
def test_each_chat_gets_its_own_form(url):
    body, kind = body_of(MESSAGE, form_of(url))
    assert (json.loads(body), kind) == (HOSTS[url], "application/json")


def test_no_secret_of_a_log_is_sent():
    secret = "hf_" + "a1B2" * 9
    for form in ("json", "text", "feishu"):
        assert secret.encode() not in body_of({"text": f"token {secret}"}, form)[0]


@pytest.fixture
def chat():
    """The address of a server, and what it got; it answers with what its path says."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.do_GET()

        def do_GET(self):
            self.send_response(500 if self.path == "/closed" else 200)
            self.end_headers()
            answers = {"/refused": {"errcode": 310000, "errmsg": "keywords not in content"}, "/ok": {"code": 0}}
            self.wfile.write(json.dumps(answers.get(self.path, "ok")).encode())

        def log_message(self, *_):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def test_a_refusal_is_a_warning_without_the_address(chat):
    address, got = chat
    warnings = []
    assert post(f"{address}/ok", MESSAGE, None, warnings.append)
    assert post(f"{address}/", MESSAGE, "dingtalk", warnings.append)
    assert (got[0], got[1]["msgtype"], warnings) == (MESSAGE, "text", [])
    for path in ("/refused", "/closed"):
        assert not post(f"{address}{path}", MESSAGE, None, warnings.append)
    texts = [say(note) for note in warnings]
    assert texts[0] == "the webhook at 127.0.0.1 did not accept the news: 310000 keywords not in content"
    assert address not in "".join(texts)


def test_a_command_gets_json_and_no_shell_reads_it(tmp_path):
    warnings = []
    written = tmp_path / "got"
    code = f"import sys; open({str(written)!r}, 'a').write(sys.stdin.read())"
    assert run_command([sys.executable, "-c", code], {"text": "$(reboot)"}, warnings.append)
    assert json.loads(written.read_text()) == {"text": "$(reboot)"}
    assert not run_command([sys.executable, "-c", "raise SystemExit(3)"], MESSAGE, warnings.append)
    assert not run_command([str(tmp_path / "no")], MESSAGE, warnings.append)
    assert [note.code for note in warnings] == ["command_failed", "command_not_started"]
    assert "exit code 3" in say(warnings[0])


def test_a_heartbeat_gets_an_address_or_touches_a_file(chat, tmp_path):
    address, _ = chat
    warnings = []
    assert beat(address, warnings.append)
    assert beat(str(tmp_path / "alive"), warnings.append)
    assert (tmp_path / "alive").exists()
    assert not beat(str(tmp_path / "no" / "alive"), warnings.append)
    assert not beat(f"{address}/closed", warnings.append)
    assert [note.code for note in warnings] == ["heartbeat_failed"] * 2
    for wrong in ("", "ftp://x/y"):
        with pytest.raises(UsageError):
            check_heartbeat(wrong)
        with pytest.raises(UsageError):
            check_webhook(wrong)
