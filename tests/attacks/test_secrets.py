"""No key, password or part of one in any output: terminal, store, MLflow, artifacts, report, gate."""

import base64
import gzip
import json
import shutil
import sqlite3
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest
from openai_server import Asked, Raw, Server, completion
from project import harness, one_line, project

from harness.core.secrecy import REDACTED, api_key, redact, reveals
from harness.llm import AnswerCache

KEY = "sk-proj-Q7w+/x9Zt4Lm2Vb8Rk5Ny3"
PASSWORD = "pa55-W0rd-of-the-proxy"
FORMS = {
    "plain": KEY,
    "begins": KEY[:14],
    "ends": KEY[-12:],
    "percent": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1],
    "base64 of a pair": base64.b64encode(f"user:{KEY}".encode()).decode()[8:-4],
    "base64 shifted": base64.b64encode(f"x{KEY}".encode()).decode()[4:-4],
    "hex": KEY.encode().hex(),
    "password": PASSWORD,
}


def everything(folder: Path) -> dict[str, bytes]:
    """The bytes of all files under a folder, decompressed if they are compressed."""
    found = {}
    for file in filter(Path.is_file, folder.rglob("*")):
        content = file.read_bytes()
        found[str(file)] = content
        if content[:2] == b"\x1f\x8b":
            found[f"{file} unpacked"] = gzip.decompress(content)
        if file.name == "answers.sqlite":
            rows = sqlite3.connect(file).execute("SELECT answer FROM calls").fetchall()
            found[f"{file} answers"] = b"\n".join(zlib.decompress(row[0]) for row in rows)
    return found


def assert_clean(folder: Path, *outputs: str) -> None:
    for where, content in {**everything(folder), **{f"output {n}": o.encode() for n, o in enumerate(outputs)}}.items():
        for form, secret in FORMS.items():
            assert secret.encode() not in content, f"{form} in {where}"


@pytest.fixture
def place(garden_data: Path, tracking: str, tmp_path: Path) -> Path:
    project(tmp_path)
    return tmp_path


def echo(asked: Asked) -> object:
    """A server that repeats the key in every answer, valid or not."""
    bearer = asked.headers["authorization"]
    said = " ".join([bearer, *(FORMS[name] for name in FORMS if name != "password")])
    number = asked.number % 5
    if number == 1:
        return Raw(400, {"error": {"message": f"bad {said}", "code": said}})
    if number == 2:
        return Raw(200, f"<html>{said}")
    made = completion({s: {"why": said, "grade": 2} for s in asked.slots}, asked, model=f"m {bearer}")
    made["choices"][0]["message"]["refusal"] = said if number == 3 else None
    return made


def test_a_key_that_the_server_repeats_is_nowhere(place: Path) -> None:
    """In labels, failures, raw answers, model names, MLflow params and tags, artifacts, report, gate and output."""
    with Server(echo) as server:
        known = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url.replace("//", f"//proxy:{PASSWORD}@")}
        done = [
            harness(place, "run", "x.yaml", code=None, **known),
            harness(place, "report", "x.yaml", code=None, **known),
            harness(place, "gate", "x.yaml", "--accept", "--why", "first", code=None, **known),
            harness(place, "gate", "x.yaml", "--out", "gate", code=None, **known),
        ]
        assert server.calls
    assert {one.returncode for one in done} <= {0, 2, 3}
    assert_clean(place, *(one.stdout + one.stderr for one in done))
    assert REDACTED.encode() in b"".join(everything(place).values())


@pytest.mark.parametrize("end", ["\r\n", "\ufeff"])
def test_white_space_around_a_key_is_removed(end: str, place: Path) -> None:
    """Such as from a file with Windows line ends: the key is sent without it."""
    with Server() as server:
        known = {"OPENAI_API_KEY": end + KEY + end, "OPENAI_BASE_URL": server.url}
        done = harness(place, "run", "x.yaml", "--no-mlflow", **known)
        assert {one.headers["authorization"] for one in server.asked} == {f"Bearer {KEY}"}
    assert_clean(place, done.stdout, done.stderr)


@pytest.mark.parametrize("middle", ["\r", "\x1b[31m", "é"])
def test_a_key_that_cannot_be_sent_is_one_line_without_it(middle: str, place: Path) -> None:
    """The line names the variable and the position of the character, not the value."""
    broken = KEY[:15] + middle + KEY[15:]
    with Server() as server:
        done = harness(place, "run", "x.yaml", "--no-mlflow", code=2, OPENAI_API_KEY=broken, OPENAI_BASE_URL=server.url)
        assert server.asked == []
    one_line(done, "OPENAI_API_KEY", "character 16 of")
    assert_clean(place, done.stdout, done.stderr)


@pytest.mark.parametrize("address", ["http://u:{}@[::1", "http://u:{}@127.0.0.1:9/\rv1", "ftp://u:{}@h/v1"])
def test_a_password_in_an_address_is_not_shown(address: str, place: Path) -> None:
    """For addresses that work and for those that do not."""
    known = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address.format(PASSWORD)}
    done = harness(place, "run", "x.yaml", "--no-mlflow", code=None, **known)
    assert done.returncode in (2, 3)
    assert_clean(place, done.stdout, done.stderr)


def test_secrets_in_settings_are_refused(place: Path) -> None:
    """They would be logged; the message has the key of the setting, not its value."""
    project(place, ', base_url: "http://h/v1?token=${OPENAI_API_KEY}"')
    done = harness(place, "run", "x.yaml", code=2, OPENAI_API_KEY=KEY)
    one_line(done, "x.yaml:9: judges[0].context_precision.base_url", "would be logged")
    project(place, f', base_url: "http://u:{PASSWORD}@h/v1"')
    one_line(harness(place, "run", "x.yaml", code=2, OPENAI_API_KEY=KEY), "base_url: holds a user, a password or a key")


def test_the_password_of_a_tracking_server_is_not_shown(place: Path) -> None:
    """It is given on the command line, so no environment variable marks it as a secret."""
    project(place, None)
    done = harness(
        place,
        "run",
        "x.yaml",
        "--tracking",
        f"http://u:{PASSWORD}@127.0.0.1:9",
        code=2,
        MLFLOW_HTTP_REQUEST_MAX_RETRIES="0",
    )
    assert PASSWORD not in done.stdout + done.stderr


def test_a_crash_shows_no_key(place: Path) -> None:
    """A component raises an exception with a value from the environment."""
    (place / "own.py").write_text(
        "import os\nfrom dataclasses import dataclass\nfrom harness import Chunker\n\n\n@dataclass(frozen=True)\n"
        "class Own(Chunker):\n    def split(self, doc):\n        raise RuntimeError(os.environ['OPENAI_API_KEY'])\n"
    )
    project(place, None, **{"chunker: {fixed: {size: 20}}\n": "chunker: own.py:Own\n"})
    text = (place / "x.yaml").read_text()
    (place / "x.yaml").write_text(text[: text.index("grid:")])
    done = harness(place, "run", "x.yaml", code=2, traceback=True, OPENAI_API_KEY=KEY)
    assert done.stderr.startswith("harness: chunker own: document 'bed0': RuntimeError: ")
    assert_clean(place, done.stdout, done.stderr)


@pytest.mark.parametrize("form", [name for name in FORMS if name != "password"])
def test_every_form_of_a_key_is_redacted(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, inside a text, twice; the surrounding text stays."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    secret = FORMS[form]
    for text in (secret, f"before {secret} after", json.dumps({"a": secret}), repr(secret), secret * 2):
        assert secret not in redact(text)
        assert reveals(text)
    assert redact(f"before {secret} after").startswith("before ")
    assert redact(f"before {secret} after").endswith(" after")


@pytest.mark.parametrize("shown", ["sk-pro****Ny3", f"{KEY[:6]}***{KEY[-4:]}", f"Bearer {KEY[:4]}********"])
def test_a_masked_key_is_redacted(shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As servers show the key that they received."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert "***" not in redact(f"no such key: {shown}.")


def test_ordinary_text_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Placeholders from documentation of local servers, short keys, file names, and words of a key made of words."""
    for name, value in (
        ("OPENAI_API_KEY", "ollama"),
        ("OTHER_KEY", "abc"),
        ("THIRD_KEY", "/home/someone/keys/one.pem"),
        ("FOURTH_KEY", "local-server-without-digits"),
    ):
        monkeypatch.setenv(name, value)
    text = "An ollama server at /home/someone/keys, abc, a local-serv **** and x.xxxxxxxxx"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("OPENAI_API_KEY", "/Q7w9Zt4Lm2Vb8Rk5Ny3+abc=", "/Q7w9Zt4Lm2Vb8Rk5Ny3+abc="),
        ("OPENAI_API_KEY", "~Q7w9Zt4Lm2Vb8Rk5Ny3", "~Q7w9Zt4Lm2Vb8Rk5Ny3"),
        ("OPENAI_BASE_URL", "http://u:p@ss-W0rd-secret@h/v1", "p@ss-W0rd-secret"),
        ("OPENAI_BASE_URL", f"http://u:{'aB3' * 200}@h/v1", "aB3" * 200),
        ("OPENAI_BASE_URL", "http://u:p%40ss-W0rd-x@h/v1", "p@ss-W0rd-x"),
        ("OPENAI_BASE_URL", "http://h/v1?code=Hh77Gg66Ff55Dd44", "Hh77Gg66Ff55Dd44"),
        ("OPENAI_API_KEY", KEY, KEY.upper()),
    ],
)
def test_secrets_of_any_shape(name: str, value: str, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets that start like a path, contain an @, are long, encoded, a parameter, or in capitals."""
    monkeypatch.setenv(name, value)
    assert secret not in redact(f"<{secret}>")


def test_a_key_in_json_escapes_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON parsers decode the escapes, so a reader of the record would see the key."""
    from harness.llm.transport import _kept

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    raw = '{"a": "' + "".join(f"\\u{ord(c):04x}" for c in KEY) + '"}'
    assert KEY in json.loads(raw)["a"]
    assert KEY not in json.loads(_kept(raw.encode()))["a"]


def test_an_address_with_a_query_is_refused(place: Path) -> None:
    """It would not work, and its parameters would be logged."""
    project(place, ', base_url: "http://127.0.0.1:9/v1?code=Hh77Gg66Ff55Dd44"')
    done = harness(place, "run", "x.yaml", "--no-mlflow", code=2, OPENAI_API_KEY=KEY)
    one_line(done, "base_url: contains a query")
    assert "Hh77" not in done.stderr


def test_a_key_file_of_two_lines_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """White space around a key is removed; inside, it is refused."""
    monkeypatch.setenv("SOME_KEY", f"  {KEY}\r\n")
    assert api_key("SOME_KEY") == KEY
    monkeypatch.setenv("SOME_KEY", " \r\n")
    assert api_key("SOME_KEY") is None


def test_answers_are_stored_without_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer cache redacts every text it stores."""
    from harness.llm import Completion, Failure, Label
    from harness.llm.answer_cache import Call

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answers = AnswerCache(tmp_path / "answers.sqlite")
    call = Call("1", "e", "m", f"m {KEY}", "ok", 0.0, 1.0, 1, 1, 1, 0, 0.0, b"{}")
    answers.keep(call, {"a": Label(1, KEY, KEY), "b": Completion((KEY,)), "c": Failure("server", KEY)})
    answers.close()
    shutil.rmtree(tmp_path / "none", ignore_errors=True)
    assert_clean(tmp_path)
