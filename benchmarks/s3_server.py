"""An S3 server on this machine: moto, which speaks S3 over HTTP and checks signatures and rights as S3 does."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PREPARE = """
import json, sys, boto3
given = {"endpoint_url": sys.argv[1], "region_name": "us-east-1"}
given |= {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
boto3.client("s3", **given).create_bucket(Bucket="bucket")
iam, keys = boto3.client("iam", **given), {}
for user, actions in {"writer": ["s3:*"], "reader": ["s3:Get*", "s3:List*"]}.items():
    iam.create_user(UserName=user)
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    iam.put_user_policy(UserName=user, PolicyName="store", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    keys[user] = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
print(json.dumps(keys))
"""


@dataclass(frozen=True)
class Server:
    """A server with an empty bucket, ``bucket``: the environment of who may write there, and of who may only read."""

    endpoint: str
    writer: dict[str, str]
    reader: dict[str, str]


@contextmanager
def serve() -> Iterator[Server]:
    """A running server, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for(port)
            prepare = [sys.executable, "-c", PREPARE, endpoint]
            keys = json.loads(subprocess.run(prepare, capture_output=True, text=True, check=True).stdout)
            check_rights_from_now_on(endpoint)
            place = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "NO_PROXY": "127.0.0.1"}
            yield Server(endpoint, place | keys["writer"], place | keys["reader"])
        finally:
            server.terminate()


def wait_for(port: int) -> None:
    """Raises TimeoutError where nobody listens within a minute."""
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"no server at port {port}")


def check_rights_from_now_on(endpoint: str) -> None:
    """Moto lets everybody in until it is told how many requests it shall not check."""
    plain = {"Content-Type": "text/plain"}
    request = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", b"0", plain)
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()
