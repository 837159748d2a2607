"""Files that URLs name: folders and patterns, models fetched whole, and what cannot be read reported as of any file."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import fsspec
import pytest

from dml_tile.files.urls import file_of, is_url
from dml_tile.readers import remote
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES

pytest.importorskip("s3fs")

MODELS: Final = EXAMPLES / "models"


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of memory://, with nothing in it."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


class SilentHandler(SimpleHTTPRequestHandler):
    """Serves a folder, and logs nothing."""

    def log_message(self, *args: object) -> None:
        pass


def put(system: Any, path: str, content: bytes | str | dict[str, Any]) -> None:
    text = json.dumps(content) if isinstance(content, dict) else content
    system.makedirs(path.rpartition("/")[0], exist_ok=True)
    system.pipe_file(path, text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"m.onnx": 100}, "m.onnx: has 100 bytes; at most 99 are fetched of a model and its weights"),
        ({"m.xml": 50, "m.bin": 50}, "m.xml: has 50 bytes; at most 99 are fetched of a model and its weights"),
        ({"m.pb": 99}, "m.pb: OpenVINO"),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_model_over_the_bound_is_not_fetched(
    memory: Any, check: Call, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], problem: str, is_known: bool
) -> None:
    for name, size in sizes.items():
        put(memory, f"/{name}", b"x" * size)
    monkeypatch.setattr(remote, "MAX_BYTES", 99)
    if not is_known:
        monkeypatch.setattr(type(memory), "info", lambda _, path: {"name": path, "type": "file", "size": None})
        problem = re.sub("has .*", "has more than 99 bytes, which are fetched of a model and its weights", problem)
    result = check(f"memory://{next(iter(sizes))}")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"dml-tile: memory://{problem}")


def test_a_model_is_given_up_when_a_client_waits_too_long(
    memory: Any, check: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(memory, "/m.onnx", (MODELS / "two_tiles.onnx").read_bytes())
    answers = Event()
    monkeypatch.setattr(remote, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(type(memory), "info", lambda *_: answers.wait())
    try:
        assert check("memory://m.onnx").stderr == "dml-tile: memory://m.onnx: fetching it took longer than 0.1 s\n"
    finally:
        answers.set()


def test_a_copy_has_the_files_beside_a_model_and_goes_with_its_block(memory: Any) -> None:
    for path in (
        "m.xml",
        "m.bin",
        "saved/saved_model.pb",
        "saved/variables/variables.index",
        "saved/assets/vocabulary",
    ):
        put(memory, f"/{path}", path)
    for url, names in (
        ("memory://m.xml", ["m.bin", "m.xml"]),
        ("memory://m.bin", ["m.bin"]),
        ("memory://saved/saved_model.pb", ["saved_model.pb", "variables.index"]),
    ):
        with remote.local_copy(url) as copy:
            assert copy.read_text() == url.removeprefix("memory://")
            assert sorted(path.name for path in copy.parent.rglob("*") if path.is_file()) == names
        assert not copy.parent.exists()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("s3://bucket/a.onnx", "bucket/a.onnx"),
        ("memory://a.json", "a.json"),
        ("zip://in/a.onnx::archive.zip", "in/a.onnx"),
        ("simplecache::s3://bucket/a.onnx", None),
        ("a.onnx", None),
        (r"C:\models\a.onnx", None),
        ("C:/models/a.onnx", None),
        ("c://models/a.onnx", None),
        (r"\\?\C:\a.onnx", None),
        ("-", None),
    ],
)
def test_a_url_is_told_from_a_path(name: str, file: str | None) -> None:
    assert is_url(name) == (file is not None or name.startswith("simplecache"))
    if not name.startswith("simplecache"):
        assert file_of(name) == (file or name)


def test_a_model_in_memory_is_checked_as_a_file_is(memory: Any, check: Call) -> None:
    for name in ("two_tiles.onnx", "two_tiles.xml", "two_tiles.bin"):
        put(memory, f"/zoo/{name}", (MODELS / name).read_bytes())
        shutil.copy(MODELS / name, name)
    put(memory, "/zoo/a.json", BAD)
    Path("a.json").write_text(json.dumps(BAD))
    put(memory, "/zoo/lines.jsonl", f"{json.dumps(TILE)}\n{{\n")
    Path("lines.jsonl").write_text(f"{json.dumps(TILE)}\n{{\n")
    names = ["a.json", "lines.jsonl", "two_tiles.onnx", "two_tiles.xml"]
    for form in ("json", "junit"):
        here = check(*names, "--format", form)
        there = check(*(f"memory://zoo/{name}" for name in names), "--format", form)
        assert there.stdout.replace("memory://zoo/", "").split() == here.stdout.split()
        assert there.stderr.replace("memory://zoo/", "") == here.stderr
        assert there.exit_code == here.exit_code == 2


def test_folders_and_patterns_are_expanded(memory: Any, check: Call) -> None:
    onnx_model = (MODELS / "two_tiles.onnx").read_bytes()
    for path in ("b.onnx", "in/a.onnx", ".hidden/c.onnx", "saved/saved_model.pb", "saved/variables/x.onnx"):
        put(memory, f"/zoo/{path}", onnx_model)
    put(memory, "/zoo/tile.json", TILE)
    put(memory, "/zoo/package.json", {"name": "other"})
    put(memory, "/zoo/readme.md", "text")
    output = json.loads(check("memory://zoo", "--format", "json").stdout)
    assert [source["source"] for source in output["sources"]] == [
        "memory:///zoo/b.onnx",
        "memory:///zoo/in/a.onnx",
        "memory:///zoo/saved/saved_model.pb",
        "memory:///zoo/tile.json",
    ]
    output = json.loads(check("memory://zoo/*.onnx", "memory://zoo/**/a.onnx", "--format", "json").stdout)
    assert [source["source"] for source in output["sources"]] == ["memory:///zoo/b.onnx", "memory:///zoo/in/a.onnx"]
    output = json.loads(check("memory://zoo", "--exclude", "in", "--exclude", "saved", "--format", "json").stdout)
    assert [source["source"] for source in output["sources"]] == ["memory:///zoo/b.onnx", "memory:///zoo/tile.json"]
    assert "memory://zoo/*.xml: no file matches the pattern" in check("memory://zoo/*.xml").stderr
    put(memory, "/bare/readme.md", "text")
    assert "memory://bare: the folder holds no models" in check("memory://bare").stderr


def test_an_archive_s_files_are_checked(check: Call) -> None:
    with zipfile.ZipFile("zoo.zip", "w") as archive:
        archive.write(MODELS / "two_tiles.onnx", "in/two_tiles.onnx")
        archive.writestr("a.json", json.dumps(TILE))
    output = json.loads(check("zip://::zoo.zip", "zip://in/*.onnx::zoo.zip", "--format", "json").stdout)
    names = [source["source"] for source in output["sources"]]
    assert names == ["zip://a.json::zoo.zip", *["zip://in/two_tiles.onnx::zoo.zip"] * 2]
    assert "errors" not in output


def test_a_server_s_files_are_checked(check: Call, tmp_path: Path) -> None:
    shutil.copy(MODELS / "two_tiles.onnx", tmp_path)
    write(str(tmp_path / "a.json"), BAD)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SilentHandler, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever).start()
        root = f"http://127.0.0.1:{server.server_port}"
        result = check(f"{root}/a.json", f"{root}/*.onnx", f"{root}/b.json", "--format", "json")
        server.shutdown()
    output = json.loads(result.stdout)
    names = [(source["source"], source["tiles"]) for source in output["sources"]]
    assert names == [(f"{root}/a.json", 1), (f"{root}/two_tiles.onnx", 2), (f"{root}/b.json", 0)]
    assert result.stderr == f"dml-tile: {root}/b.json: there is no such file\n"


def test_reports_give_the_url(memory: Any, check: Call) -> None:
    put(memory, "/zoo/a b.json", BAD)
    assert '"uri": "memory://zoo/a%20b.json"' in check("memory://zoo/a b.json", "--format", "sarif").stdout
    assert "file=memory%3A//zoo/a b.json" in check("memory://zoo/a b.json", "--format", "github").stdout


@pytest.mark.parametrize(
    ("url", "content", "problem"),
    [
        ("memory://no/such.onnx", None, "there is no such file"),
        ("memory://no/such.json", None, "there is no such file"),
        ("memory://empty.onnx", b"", "is not an ONNX model: it is empty"),
        ("memory://bad.onnx", b"\xff" * 99, "is not an ONNX model: it is truncated, or another format"),
        ("memory://bad.json", b"{", "unreadable JSON"),
        ("nowhere://a.json", None, "Protocol not known: nowhere"),
        ("zip://a.json::missing.zip", None, "there is no such file"),
        ("zip://a.json::broken.zip", None, "cannot be read: BadZipFile"),
    ],
)
def test_what_cannot_be_read_is_that_file_s_problem(
    url: str, content: bytes | None, problem: str, memory: Any, check: Call
) -> None:
    put(memory, "/good.json", TILE)
    Path("broken.zip").write_bytes(b"no archive")
    if content is not None:
        put(memory, url.removeprefix("memory:/"), content)
    result = check(url, "memory://good.json")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"dml-tile: {url}: {problem}")
    assert "memory://good.json: accepted" in result.stdout


def test_without_fsspec_a_url_says_what_to_install(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    assert (
        check("s3://b/a.json").stderr == "dml-tile: s3://b/a.json: is a URL, which fsspec reads: pip install fsspec\n"
    )


def test_plain_checks_import_no_fsspec() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from dml_tile.cli.app import app;"
        f"print(CliRunner().invoke(app, ['check', {str(EXAMPLES / 'tile.json')!r}]).exit_code);"
        "print(sorted({'fsspec', 'distributed', 'dask'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "0\n[]\n"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, bytes], None]]:
    """Puts files into a bucket of a local server, which asks for no real credentials."""
    import boto3
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="zoo")
    try:
        yield lambda key, body: client.put_object(Bucket="zoo", Key=key, Body=body)
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_bucket_is_checked(
    bucket: Callable[[str, bytes], None], check: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket("in/two_tiles.onnx", (MODELS / "two_tiles.onnx").read_bytes())
    bucket("in/a.json", json.dumps(BAD).encode())
    bucket("top.onnx", (MODELS / "two_tiles.onnx").read_bytes())
    for names in (["s3://zoo"], ["s3://zoo/**/*.json", "s3://zoo/*.onnx", "s3://zoo/in/*.onnx"]):
        output = json.loads(check(*names, "--format", "json").stdout)
        assert sorted((source["source"], source["tiles"]) for source in output["sources"]) == [
            ("s3://zoo/in/a.json", 1),
            ("s3://zoo/in/two_tiles.onnx", 2),
            ("s3://zoo/top.onnx", 2),
        ]
        assert "errors" not in output
    result = check("s3://zoo/none.onnx", "s3://nobucket/a.onnx", "s3://zoo/in/a.json", "--jobs", "2")
    assert "s3://zoo/none.onnx: there is no such file" in result.stderr
    assert "s3://nobucket/a.onnx: there is no such file" in result.stderr
    assert "s3://zoo/in/a.json: refused" in result.stdout


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_bucket_that_asks_for_credentials_is_a_problem(bucket: object, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "dml_tile", "check", "s3://zoo/a.onnx"]
    clean = {
        key: value for key, value in os.environ.items() if key not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    }
    nowhere = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, capture_output=True, check=False, text=True, env=clean | nowhere)
    assert done.returncode == 2
    assert done.stderr.startswith("dml-tile: s3://zoo/a.onnx: cannot be read: NoCredentialsError")
    assert "Traceback" not in done.stderr
