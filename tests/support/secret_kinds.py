"""Kinds of secrets as they are printed, and what looks like one and is none."""

from logparse.masking import shapes

# Each line holds a secret where it has `{}`.
PRINTED = (
    # Names.
    *("ak={}", "sk={}", "obs_sk={}", "ObsException: ak={} sk={}", '{{"ak": "{}", "sk": "{}"}}', "OBS_AK: {}"),
    *("密码：{}", "密码: {}", "登录密码={}", "口令：{}", "密钥 = {}", "令牌：{}", "数据库密码为{}", "密码是 {}"),
    *("password：{}", "password＝{}", "secretKey={}", "SecretAccessKey: {}", "PGPASSWORD={}", "MYSQL_PWD={}"),
    *("REDISCLI_AUTH={}", "SSHPASS={} sshpass -e ssh host", "api-key: {}", "x-api-key: {}", "X-Auth-Token: {}"),
    *("SWANLAB_API_KEY={}", "MODELSCOPE_API_TOKEN={}", "HUGGING_FACE_HUB_TOKEN={}", "user_pwd={}", "db_pw={}"),
    *("AccountKey={}", "accessKeySecret={}", "client_secret={}", "passphrase: {}", "azure.storage.key={}"),
    # Spaces, quotes and wrappers.
    *("password     =     {}", "password\t:\t{}", 'password="{}"', "password='{}'", "password=`{}`", "password := {}"),
    *("token=SecretStr('{}')", "api_key=SecretStr({!r})", "password=b'{}'", "password: ['{}', '{}']"),
    *("auth=('bob', '{}')", '{{\\"password\\": \\"{}\\"}}', "os.environ['HF_TOKEN'] = '{}'", "password => '{}'"),
    *("if '{}' == password", 'login(password "{}")', "set_password('{}')", "<password>{}</password>"),
    *("password: {}, user: bob", "password={};user=bob", "password={}&user=bob", "login(user=bob, password={})"),
    *("moxing: {{'ak': '{}', 'sk': '{}', 'securityToken': '{}'}}", "mox.file.set_auth(ak='{}', sk='{}')"),
    *("oss2.Auth('{}', '{}')", "HTTPBasicAuth('bob', '{}')", "Namespace(lr=1, api_key='{}')", "password='it''s{}'"),
    *("AccountName=x;AccountKey={};EndpointSuffix=core", "psycopg2.connect('user=bob password={} host=h')"),
    *("Settings(password=SecretStr('{}'), user='b')", '<entry key="password">{}</entry>', "passcode={}"),
    # Sentences and tables.
    *("| hf_token | {} |", "│ api_key   │ {} │", "hf_token ........... {}", "WANDB_API_KEY is {}", "secretKey {}"),
    *("invalid token {}", "Incorrect API key provided: {}", "Login failed with password {}", "Password for bob: {}"),
    *("用户名 bob，密码 {}", "请使用口令“{}”登录", "token是{}", "machine h login bob password {}"),
    # Commands.
    *("aws configure set aws_secret_access_key {}", "echo {} | docker login -u bob --password-stdin"),
    *(
        "train.py --oss-ak {} --oss-sk {}",
        "git clone https://{}@github.com/x/y.git",
        "pip --index-url https://u:{}@host/x",
    ),
    *("docker login -u bob -p {} host", "docker login --password {} host", "PGPASSWORD={} psql -h db"),
    *("obsutil config -i=id -k={}", "obsutil config -k {}", "sshpass -p {} ssh host", "mysql -uroot -p{} db"),
    *("curl -u bob:{} https://host/x", "curl -H 'Authorization: Bearer {}' host", "redis-cli -a {} ping"),
    *("swanlab login -k {}", "wandb.login(key='{}')", "train.py --hf-token {} --lr 1", "openssl rsa -passin pass:{}"),
    *("['train.py', '--api-key', '{}', '--lr']", "ossutil config -e host -i id -k {}"),
    # URLs and headers.
    *("https://bob:{}@host.example.com/x", "postgres://bob:{}@db:5432/x", "redis://:{}@host:6379/0"),
    *("https://x.example.com/o?Signature={}&x=1", "https://x.example.com/o?X-Amz-Signature={}&x=1"),
    *("https://x.example.com/o?OSSAccessKeyId={}", "https://x.example.com/o?q-signature={}", "s3://b/o?sig={}"),
    *("https://x.example.com/o?access_token={}&x=1", "https://x.example.com/o?X-Obs-Security-Token={}"),
    *("https://open.feishu.cn/open-apis/bot/v2/hook/{}", "https://oapi.dingtalk.com/robot/send?access_token={}"),
    *("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={}", "https://hooks.slack.com/services/T0/B0/{}"),
    *("https://discord.com/api/webhooks/0123456789/{}", "https://api.telegram.org/bot0123456789:{}/sendMessage"),
    *("Max retries exceeded with url: /open-apis/bot/v2/hook/{} (x)", "url: /services/T0123ABCD/B0123ABCD/{}"),
    *("url: /api/webhooks/0123456789/{}", "url: /bot0123456789:{}/sendMessage", "url: /robot/send?access_token={}"),
    *("Authorization: Bearer {}", "authorization: Basic {}", "Authorization: OBS ak0:{}", "Authorization={}"),
    *("Cookie: session={}", "Proxy-Authorization: Basic {}", "AWS4-HMAC-SHA256 Credential=x/y, Signature={}"),
)
# More of the same, for the quick tests.
MORE = (
    # After the id of a key, which is masked by its shape.
    *(
        "bad credentials: LTAI5tQz9ABCDEFGH:{}",
        "Authorization: AWS AKIAIOSFODNN7ABCDEF:{}",
        "Cookie: eyJhb.eyJhb.s; a={}",
    ),
    *('api_keys=["sk-ABCDEFGH1234", "{}"]', "auth='AKIAIOSFODNN7ABCDEF:{}'", "password=hf_ABCDEFGHIJKL:{}"),
    # Next to its name in a dump, a table or a call.
    *(
        "  hub_token ............................ {}",
        "| password | {} |",
        "│ db_password │ {} │",
        "WANDB_API_KEY -> {}",
    ),
    *("password\t{}", "setdefault('WANDB_API_KEY', '{}')", "setattr(cfg,'password','{}')", "('password', '{}')"),
    *("['aws', 'configure', 'set', 'aws_secret_access_key', '{}']", "| x | password | {} |"),
    # In quotes that begin before the name.
    *("Command '['a.py', 'password=My Pass {}', 'lr=1']'", "['--password=My,Pass,{}']", "['DB_PASSWORD=My {}']"),
    *("sshpass -p 'My,Pass,{}' ssh h", "curl -u 'admin:My Pass {}'", "docker login -u bob -p 'My Pass {}'"),
    # In URLs, and in texts as HTML and URLs encode them.
    *("https://{}:x-oauth-basic@github.com/a/b.git", "https://{}:@host/", "http://bob:88888/{}@proxy.lab:8080"),
    *("mysql://root:12345/{}@db", "postgres://bob:'{}'@db/x", "password%3D{}", "&quot;password&quot;:&quot;{}&quot;"),
    # After words about the value.
    *(
        "error: argument --hf-token: invalid choice: '{}' (choose from 1)",
        "argument --api_key: invalid int value: '{}'",
    ),
    *(
        "password: str = '{}'",
        "password: Optional[str] = '{}'",
        "f(password: str='{}')",
        "password=Field(default='{}')",
    ),
    # Below the name of a secret.
    *("secrets={{'db': '{}'}}", "password={{'value': '{}'}}", '"passwords": {{"root": "a1", "bob": "{}"}}'),
    *(
        f"{name}={{}}"
        for name in (
            *("api_key_2", "API_KEY1", "token2", "dbpass", "rootpass", "userpwd", "passWord", "pass_word", "pswd"),
            *("passkey", "GITHUB_PAT", "github_pat", "token_hub", "token_for_hub", "tokenHF", "accessid", "access_id"),
            *("fs.azure.account.key.acct.blob.core.windows.net", "私钥", "秘钥", "密匙", "授权码"),
        )
    ),
)
# Values that end a careless pattern early.
VALUES = ("Leak1Zq", "Le;ak1Zq", "Le)ak1Zq", "Le'ak1Zq", "Le$ak#1Zq", "Le,ak1Zq", "Le]ak}1Zq")
# Ways to print a line, as a framework, a program or a launcher does.
CONTEXTS = (
    "{}",
    "RuntimeError: {}",
    "2026-01-01 10:00:00 [rank0]: ValueError: request failed: {}",
    "[ERROR] worker 3: {}",
    "environment: {}",
    '{{"message": {json}, "level": "error"}}',
    "got {}\\n  at line 3",
)
SHAPES = tuple(sample for shape in shapes() for sample in shape.sample)

# Each of these stays as it is.
HARMLESS = (
    *(
        "/services/training/baseline/run.log",
        "GET /api/webhooks/list 200",
        "/data/bot/v2/hook.py",
        "/services/t5/base/x",
    ),
    *("12,345 tokens/s", "tokens per second: 4096", "tokens/s/device=812.5", "num_tokens: 300B", "token count: 5"),
    *("tokenizer_path=/data/llama/tokenizer.model", "tokenizer_type=Llama2Tokenizer", "tokenizer: Qwen2TokenizerFast"),
    *("num_key_value_heads=8", "num-key-value-heads: 8", "key_value_channels=128", "linear_num_key_heads: 16"),
    *("qk_layernorm=True", "query_key_norm: True", "sk=streamk_gemm", "sk kernel took 3 ms", "split_sk: 4", "ak=None"),
    *("commit 0f3a9c1d5e7b2468ace013579bdf2468ace01357", "git_sha=9c1d5e7b2468ace0", "sha256:9f86d081884c7d65"),
    *("md5 checksum 5d41402abc4b2a76b9719d911017c592 ok", "run_id=3f2a9c1e", "run id: 7b2468ac-0135-79bd-f246"),
    *("pad_token_id=151643", "eos_token_id: [151645, 151643]", "bos_token=<s>", "mask_token=[MASK]", "pad_token=<pad>"),
    *("pass rate: 0.87", "pass@1 = 0.42", "forward pass: done", "first pass took 3 s", "pass: 12/30", "num_pass=3"),
    *("KeyError: 'model.layers.0.weight'", "unexpected key: optimizer", "missing key: model.layers.0.mlp.weight"),
    *("size mismatch for key: model.layers.31.self_attn.q_proj.weight", "keys: ['input_ids', 'labels']"),
    *("Unexpected token '<' at position 0", "special tokens: 293", "max_new_tokens=512"),
    *("image_token=image", "token_dropping=False", "moe_token_dispatcher_type=alltoall", "drop_token: False"),
    *("calculate_per_token_loss=False", "loss per token: 1.93", "tokens=4096", "consumed tokens: 1,048,576"),
    *(
        "author=Ann",
        "authors: Ann, Bob",
        "credential_type=file",
        "token_file=/run/token",
        "password=None",
        "passwd: ''",
    ),
    *("step 5: password=${{DB_PASSWORD}}".replace("{{", "{").replace("}}", "}"), "secret: ********"),
    *("peak=989.4 TFLOP/s", "bucket s3://data/keys/part-0001", "task=pretrain", "mask=causal", "disk=nvme0"),
    *(
        "hostname node-17.example.com",
        "https://host.example.com:8080/x",
        "ssh -p 22 root@host",
        "docker run -p 80:80 x",
    ),
    *("python -u train.py", "docker run -u 1000:1000 x", "user@node17:~$ ls", "hook_forward=True", "webhook_retries=3"),
    *("APPLIED gradient clipping", "AP50: 0.61", "ACCURACY 0.93", "SKIPPED 3 steps", "sk-learn 1.5", "AIDA64 run"),
    *("cd /home/lab/Runs1/Baseline2/LLaMA2/AscendSpeedBuild/Training/Scripts/Pretrain/x", "expected=PASS -> PASS"),
    *('"GcsAuth":{"AnonymousAccess":false}', "hub_token=<HUB_TOKEN>,", "cookies = $40."),
    *("bypass=Yes2All", "num_passes=Qz9", "path=Qz9Leak", "url_path=Qz9Leak", "pattern=Qz9Leak", "patch2=Qz9Leak"),
    *("key_value=a_b", "tokens_per_user=12", "tokenHub_size=9k", "tokenizer2=Qz9/Leak", "compass=Qz9", "access=Qz9"),
    *(
        "sort_key=name2Vec3",
        "sampling_key=PRNGKey(0)",
        "credential.helper 'store'",
        "webhook: enabled",
        "max_tokens2=1k",
    ),
    *(
        "| step | token | loss |",
        "| token | 0.35 |",
        "cat secret | base64 -d",
        "token -> id",
        "keys: ['token', 'loss']",
    ),
    *(
        "loading token ... done",
        "password\tuser",
        "| password | required |",
        "tokens ..... 4096",
        "['password', 'user_name']",
    ),
    *("http://reg:5000/img@sha256:00aa", "http://a.b:80/c@d", '{"u":"http://h:80","m":"bob@x"}', "http://h:80/x@1.2.3"),
    *("密钥（AK/SK）不能为空", "密码 error", "令牌（token）", "密码错误", "API key: missing"),
    *("exp_hf_checkpoint2megatron", "run-hf_Llama2model", "task-sk-Large-v2", "convert-hf_llama3_8B_to_Megatron_v1"),
    *(
        "rpa_block=2",
        "sha256~",
        "xai-explain",
        "<name>sort.key</name><value>2a</value>",
        "Public key: abcdefghijklmnopqrst",
    ),
    *("docker login -profile prod", "vault login failed", "wandb login 0.15.3", "curl -X POST http://a:80/x", "zip -P"),
    *("--token: expected one argument", "curl -o x:y", "mongosh -p", "login -u bob -p"),
    *("train_sk_small.yaml", "ms-swift 3.2.0", "npm_config_registry=default", "hf_home=/data/hf", "r8_block: 4"),
)
