"""No output shows a secret of a log: a setting is masked by its name, any text by its shape, before it is kept."""

import io
import json
from pathlib import Path

import polars as pl
import pytest
from helpers import SETTINGS, arguments_dump, megatron_line, run_logparse
from secret_kinds import MORE, PRINTED

from analysis.history.run_records import mask_secrets
from logparse.decode.read_run import read_run
from logparse.masked_frames import mask_settings, masked_settings
from logparse.masking import mask, mask_setting, mask_text

SECRETS = {
    "hf_token": "hf_SECRETabcdefghijkl",
    "hub_token": "SECRET-hub",
    "use_auth_token": "SECRETauth",
    "wandb_api_key": "0123SECRET456789abcdef",
    "openai_api_key": "sk-proj-SECRET_1234567890",
    "aws_access_key_id": "AKIASECRET1234567890",
    "aws_secret_access_key": "wJalrSECRET/K7MDENG/bPx+EXAMPLEKEY",
    "encryption_key": "SECRETencryption",
    "db_password": "SECRETpass",
    "redis_passwd": "SECRETpasswd",
    "ssh_passphrase": "SECRETphrase",
    "client_secret": "SECRETclient",
    "google_application_credentials": "SECRETcredentials",
    "basic_auth": "bob:SECRETbasic",
    "session_cookie": "SECRETcookie",
    "hubToken": "SECRETcamel",
    "swanlab_api_keys": "['SECRET1','SECRET2']",
    "tracking_uri": "https://bob:SECRETuri@mlflow.example.com/x",
    "database": "postgres://bob:SEC/SECRET@db.example.com:5432/x",
    "sentry": "https://0123456789SECRET0123@o1.ingest.example.com/1",
    "headers": "[('Authorization','Bearer SECRETbearer1')]",
    "header": "Authorization:Basic_SECRETheader",
    "remote": "https://ghp_SECRET1234567890@github.com/x/y",
    "slack": "xoxb-1234567890-SECRET",
    "session": "eyJhbGciOi.eyJzdWIi.SECRET_signature",
    "environment": "HF_TOKEN=SECRETenv,LEVEL=2",
    "launch": "train.py,--wandb-key=SECRETflag,--lr=1",
}
# One key of each shape that is a secret wherever it is, whatever the name before it.
KEYS = (
    *(f"{kind}HIDDEN0123456789" for kind in ("AKIA", "ASIA", "AROA", "AIDA", "sk-", "hf_", "github_pat_", "glpat-")),
    *(f"gh{kind}_HIDDEN0123456789" for kind in "pousr"),
    *("xoxb-HIDDEN-0123456789", "AIzaHIDDEN0123456789-_", "eyJHIDDEN.eyJHIDDEN.HIDDEN", "eyJHIDDEN.eyJHIDDEN"),
)
# What comes before a secret of any shape.
FRONTS = (
    *("bearer ", "Authorization: Bearer ", "authorization=basic ", "Authorization: Token ", "Authorization: Digest "),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN EC PRIVATE KEY-----", "https://hooks.slack.com/services/T0/"),
    *("x?sig=", "x?a=1&signature=", "x?X-Amz-Credential=", "x?x-amz-security-token=", "x?x-goog-signature="),
    "x?x-oss-signature=",
)
# Words that make a secret of a setting.
NAMES = (
    *("password", "passwords", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "cred"),
    *("creds", "auth", "authorization", "bearer", "cookie", "cookies", "apikey", "apikeys", "accesskey"),
    *("secretkey", "privatekey", "authtoken", "hftoken", "apitoken", "accesstoken", "pass", "pwd", "token"),
)
PLAIN = {
    "tokenizer_type": "Llama2Tokenizer",
    "tokenizer_model": "/data/tokenizer.model",
    "num_tokens": "300B",
    "moe_token_dispatcher_type": "alltoall",
    "kv_channels": "128",
    "query_key_layer_scaling": "True",
    "linear_key_head_dim": "128",
    "author": "Ann Other",
    "tokens_per_batch": "4M",
    "train_tokens": "1.2T",
    "pad_token": "<pad>",
    "mask_token": "[MASK]",
    "eos_token_id": "[1, 2]",
    "image_token": "image",
    "use_auth_token": "False",
    "token": "None",
    "hub_token": "<HUB_TOKEN>",
    "password": "None",
    "json_keys": "['text']",
    "reward_fn_key": "data_source",
    "calculate_per_token_loss": "False",
    "loss_reduction": "per_token",
    "credential_type": "file",
    "forward_pass": "whole",
    "remote": "https://example.com:8080/a@b",
    "save": "/data/token/key",
}
TEXTS = (
    "RuntimeError: 401 for https://bob:SECRET1@proxy.example.com:8080/x",
    "OSError: token hf_SECRETabcdefghij is invalid",
    "ValueError: login failed, password='SECRET 2', user=bob",
    'RuntimeError: headers {"Authorization": "Bearer SECRET3abc"}',
    'RuntimeError: {\\"api_key\\": \\"SECRET4\\"}',
    "train.py: error: unrecognized arguments: --hf-token SECRET5 --lr 3",
    "RuntimeError: ['--api-key', 'SECRET6', '--lr']",
    "PermissionError: https://x.example.com/o?X-Amz-Signature=SECRET7&x=1",
    "RuntimeError: bob:SECRET8@proxy.example.com:3128 refused the connection",
    "RuntimeError: -----BEGIN RSA PRIVATE KEY-----SECRET9-----END RSA PRIVATE KEY-----",
    "RuntimeError: AWS_SECRET_ACCESS_KEY: SECRET10/abc+def",
)


def test_secrets_are_masked_and_stay_so():
    for name, value in SECRETS.items():
        masked = mask_setting(name, value)
        assert "SECRET" not in masked, name
        assert "***" in masked, name
        assert mask_setting(name, masked) == masked
        assert mask_setting(name, value.replace("SECRET", "OTHERS")) != masked, name


def test_each_shape_of_a_secret_is_masked():
    texts = [f"got {key} here" for key in KEYS] + [f"got {front}HIDDEN-0123456789 here" for front in FRONTS]
    texts += ["got redis://:HIDDEN@host here", "got https://HIDDEN-0123456789@host here"]
    masked = [mask_text(text) for text in texts]
    assert masked[: len(KEYS)] == [f"got {mask(key)} here" for key in KEYS]
    assert [text for text, shown in zip(texts, masked, strict=True) if "HIDDEN" in shown or "***" not in shown] == []
    assert mask_settings(pl.DataFrame({"name": "x", "value": texts}))["value"].to_list() == masked


def test_each_name_of_a_secret_masks_its_value():
    assert [name for name in NAMES if mask_setting(f"my.{name}", "Any1") != mask("Any1")] == []
    names = [*NAMES, *(name for line in MORE if (name := line.removesuffix("={}")).isidentifier())]
    frame = mask_settings(pl.DataFrame({"name": names, "value": "Zq8kd0"}))
    assert frame.filter(pl.col("value") != mask("Zq8kd0"))["name"].to_list() == []


def test_settings_that_are_no_secret_stay():
    assert {name: mask_setting(name, value) for name, value in PLAIN.items()} == PLAIN


def test_texts_are_masked_by_shape_and_by_the_names_in_them():
    for text in TEXTS:
        masked = mask_text(text)
        assert "SECRET" not in masked.replace("AWS_SECRET_ACCESS_KEY", ""), text
        assert mask_text(masked) == masked


def test_text_without_secrets_stays():
    for text in (
        "KeyError: 'model.layer.0'",
        "unexpected key: optimizer",
        "RuntimeError: invalid token <eos>, token: 5",
    ):
        assert mask_text(text) == text


def test_mask_is_four_digits_of_the_hash():
    assert mask("hunter2") == "***f52f"
    for name, value in (("password", "12345678"), ("password", "1234k"), ("password", "-1234"), ("otp", "123456")):
        assert mask_setting(name, value) == mask(value)
    assert mask_setting("password", "<Qz9Leak14>") == mask("<Qz9Leak14>")


def test_settings_that_are_masked_are_counted_by_name():
    rows = [("password", "***1234"), ("password", "***5678"), ("url", "x://a:***1234@h"), ("stars", "***")]
    frame = pl.DataFrame(rows, schema=["name", "value"], orient="row")
    assert masked_settings([frame, frame]) == 2


def log_with_secrets(path: Path, changed: str = "", ms: float = 1000.0) -> Path:
    secrets = {name: value.replace("SECRET", f"SECRET{changed}") for name, value in SECRETS.items()}
    steps = [megatron_line(step, ms=ms + step % 7) for step in range(1, 31)]
    # Every kind as a value of a setting, and in lines that are quoted.
    secrets |= {f"kind_{n}": line.format(*3 * [f"SECRET{changed}{n}Zq8kd0"]) for n, line in enumerate(PRINTED)}
    errors = [f"[rank0]: {text}" for text in TEXTS]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join([arguments_dump(SETTINGS | {"world_size": 8} | secrets), *steps, *errors, ""]), encoding="utf-8"
    )
    return path


def test_note_counts_them(tmp_path):
    log = read_run([str(log_with_secrets(tmp_path / "run.log"))])
    assert {note.code: note.fields for note in log.notes}["secrets_masked"] == {"n": len(SECRETS) + len(PRINTED)}


def searched(path: Path) -> str:
    """All text of a file, of a Parquet file as it is read."""
    if path.suffix == ".parquet":
        return json.dumps(pl.read_parquet(path).to_dicts(), default=str)
    return path.read_bytes().decode("utf-8", "replace")


@pytest.mark.usefixtures("analysed_once")
def test_no_output_shows_a_secret(tmp_path):
    for run in range(3):
        log_with_secrets(tmp_path / "old" / f"run{run}.log", ms=1000.0 + run)
        log_with_secrets(tmp_path / "new" / f"run{run}.log", "B", ms=1400.0 + run)
    log_with_secrets(tmp_path / "named" / "hf_token=SECRETname1.log")
    one, named = "old/run0.log", "named/hf_token=SECRETname1.log"
    alarmed = ["--require", "steady_step_time_ms<=1", "--state", "out/state.json", "--on-alarm", "tee out/alarm.json"]
    sides = ["old/run0.log", "new/run0.log"]
    commands = [
        *(["analyze", one, *more] for more in (["-v"], ["--json"], ["--markdown"])),
        ["analyze", one, "-o", "out/one", "--chart-format", "json", "--require", "steady_step_time_ms<=1"],
        ["analyze", "--each", "named", "-o", "out/named", "--chart-format", "json"],
        *(["diagnose", one, *more] for more in ([], ["--json"], ["-q"])),
        ["diagnose", named, "-q"],
        ["watch", named, "--once", "--jsonl", *alarmed],
        *(["record", f"old/run{run}.log", "--history", "runs", "--release", "1"] for run in range(3)),
        *(["record", f"new/run{run}.log", "--history", "runs", "--release", "2"] for run in range(3)),
        *(["compare", *sides, *more] for more in (["-v", "-o", "out/compare"], ["--json"], ["--markdown"])),
        *(["gate", "--baseline", "old", "--candidate", "new", *more] for more in (["-o", "out/gate"], ["--json"])),
        *(["trend", "--history", "runs", *more] for more in (["-o", "out/trend"], ["--json"])),
        *(["bisect", "old", "new", *more] for more in ([], ["--json"])),
        ["bisect", "release=1", "release=2", "--history", "runs"],
        ["history", "list", "--history", "runs", "--json"],
    ]
    shown = {}
    for command in commands:
        done = run_logparse(*command, cwd=tmp_path)
        assert done.returncode in (0, 1, 4), done.stderr
        shown[" ".join(command)] = done.stdout + done.stderr
    runs = json.loads(shown["history list --history runs --json"])
    ids = [row["run_id"] for row in (runs["runs"] if isinstance(runs, dict) else runs)]
    assert len(ids) == 6
    for run in ids:
        shown[f"history show {run}"] = run_logparse("history", "show", run, "--history", "runs", cwd=tmp_path).stdout
    files = [path for folder in ("out", "runs") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert tmp_path / "out/alarm.json" in files
    assert {path.suffix for path in files} >= {".html", ".json", ".md", ".xml", ".parquet"}
    shown |= {str(path): f"{path.relative_to(tmp_path)} {searched(path)}" for path in files}
    # The name of a setting holds the word too.
    leaks = {name: text.find("SECRET") for name, text in shown.items() if "SECRET" in text.replace("AWS_SECRET_", "")}
    assert leaks == {}
    assert "***" in shown[f"compare {' '.join(sides)} -v -o out/compare"]


def test_history_of_an_older_version_is_masked_on_reading():
    pairs = [{"name": "hf_token", "value": "hf_SECRETabcdefgh"}, {"name": "seed", "value": "1"}]
    rows = pl.DataFrame({"run_id": ["a", "b", "c"], "settings": [pairs, None, pairs[1:]]})
    masked = mask_secrets(rows)
    assert masked.columns == rows.columns
    assert masked.schema == rows.schema
    assert masked["settings"].to_list() == [
        [{"name": "hf_token", "value": mask("hf_SECRETabcdefgh")}, pairs[1]],
        None,
        pairs[1:],
    ]
    buffer = io.BytesIO()
    masked.write_parquet(buffer)
    assert b"SECRET" not in buffer.getvalue()


@pytest.mark.parametrize("end", ["abcdefghijkl", "abcd1234XYZ"], ids=["letters", "digits, which look like a number"])
def test_a_draft_and_the_test_of_a_format_show_no_secret(end, tmp_path):
    log, draft, nothing = tmp_path / "hf_token=SECRET9xyz.log", tmp_path / "draft.toml", tmp_path / "nothing.log"
    secret = f"hf_token=hf_SECRET{end} |"
    values = f"{secret} time 3.2{{i}} s | api_key: sk-SECRET12{end} |"
    lines = [f"update {i} of 100 | loss 2.{i + 10} | {values.format(i=i)}" for i in range(1, 13)]
    log.write_text("\n".join([*lines, ""]), encoding="utf-8")
    drafted = run_logparse("formats", "suggest", str(log), "-o", str(draft), cwd=tmp_path)
    tested = run_logparse("formats", "test", str(draft), str(log), cwd=tmp_path)
    nothing.write_text("".join(f"{secret} step {i}\n" for i in range(1, 6)), encoding="utf-8")
    refused = run_logparse("formats", "suggest", str(nothing), cwd=tmp_path)
    shown = "".join((draft.read_text(encoding="utf-8"), *(r.stdout + r.stderr for r in (drafted, tested, refused))))
    assert not [part for part in ("SECRET", end, end[-3:]) if part in shown]
    assert "step time 3.2" in drafted.stderr
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        "sshpass -p SECRET1 ssh host",
        "['sshpass', '-v', '-p', 'SECRET1', 'ssh']",
        "curl -s -u 'admin:SECRET1' host/x",
        "curl --user=admin:SECRET1 host/x",
        "-u admin:SECRET1",
        "mysql -uroot -pSECRET1 db",
        "['mysqldump', '-u', 'root', '-pSECRET1']",
    ],
)
def test_a_password_in_a_flag_of_a_command_is_masked(text):
    shown = mask_text(text)
    assert "SECRET" not in shown
    assert mask("SECRET1") in shown
    assert mask_text(shown) == shown
    settings = pl.DataFrame({"name": ["command"], "value": [text]})
    assert masked_settings([mask_settings(settings)]) == 1


@pytest.mark.parametrize(
    "text",
    ["docker run -u 1000:1000 image", "python -u train.py --lr 1e-5", "mysql -u root -p db", "ssh -p 22 root@host"],
)
def test_such_flags_without_a_password_stay(text):
    assert mask_text(text) == text
