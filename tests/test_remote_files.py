"""Files that URLs name: folders and patterns, models fetched whole, and what cannot be read reported as of any file."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import fsspec
import pytest
from typer.testing import CliRunner

from dml_tile.checks.file_check import check_model
from dml_tile.cli.app import application
from dml_tile.errors import InputError
from dml_tile.readers import remote, urls
from dml_tile.readers.urls import Url, file_of, source_named
from dml_tile.reports.report import FORMATS
from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.outputs import without_times
from tests.helpers.paths import EXAMPLES

pytestmark = pytest.mark.skipif(find_spec("s3fs") is None, reason="needs s3fs")

MODELS: Final = EXAMPLES / "models"
MODEL: Final = (MODELS / "two_tiles.onnx").read_bytes()


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of memory://, with nothing in it."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[object]]]:
    """The URL of a folder's server, and the requests that it gets."""
    requested: list[object] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            requested.append(args)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}", requested
        server.shutdown()


def encoded(content: Any) -> bytes:
    """Return bytes as they are, and anything else as JSON."""
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def put(system: Any, path: str, content: Any) -> None:
    system.pipe_file(path, encoded(content))


def sources(check: Call, *arguments: str) -> list[tuple[str, int]]:
    """The sources of a check without problems, each with the number of its tiles."""
    result = check(*arguments, "--format", "json")
    assert result.stderr == ""
    return [(source["source"], source["operators"]) for source in json.loads(result.stdout)["sources"]]


# Names


@pytest.mark.parametrize(
    ("argument", "text", "file"),
    [
        # what is the same without credentials is empty
        ("s3://bucket/a.onnx", "", "bucket/a.onnx"),
        ("simplecache::s3://bucket/a.onnx", "", "bucket/a.onnx"),
        ("filecache://x::simplecache::gs://b/c", "", "b/c"),
        ("https://h:8080/p@1/a.onnx", "", "h:8080/p@1/a.onnx"),
        ("s3://b/day=0?/part=1/*.onnx", "", "b/day=0?/part=1/*.onnx"),
        ("abfs://container@account.host/a", "", "container@account.host/a"),
        ("https://h/a.onnx?token", "https://h/a.onnx?***", "h/a.onnx"),
        ("https://h/a.onnx#x?y=1", "https://h/a.onnx?***", "h/a.onnx"),
        ("https://me:se@cr/et@h/a.onnx?sig=a/b", "https://***@h/a.onnx?***", "h/a.onnx"),
        ("https://token@h/a.onnx", "https://***@h/a.onnx", "h/a.onnx"),
        ("https://me:se::cret@h/a", "https://***@h/a", "h/a"),
        ("s3://key:se/cret@b/a?versionId=1", "s3://***@b/a?***", "b/a"),
        ("simplecache::https://me:secret@h/z?sig=1", "simplecache::https://***@h/z?***", "h/z"),
        *((name, None, name) for name in ("a.onnx", r"C:\models\a.onnx", "C:/a.onnx", "c://a.onnx", r"\\?\C:\a", "-")),
        *((name, None, name) for name in ("plain::y.json", "zip::a.zip", "dask::x.json", "./s3://a", "a/b://c")),
    ],
)
def test_an_argument_is_a_url_or_a_path_and_shows_no_credentials(argument: str, text: str | None, file: str) -> None:
    source = source_named(argument)
    assert isinstance(source, Url) == (text is not None)
    assert source == (text or argument)
    assert file_of(source) == file
    again = pickle.loads(pickle.dumps(source_named(source)))
    assert (type(again), again) == (type(source), source)
    assert not isinstance(again, Url) or again.typed == argument


@pytest.mark.parametrize(
    "url",
    [
        *("dask::memory://a.json", "reference://a.json", "reference::memory://a.json", "github://o:r@main/a.json"),
        *("HTTPS://h/a.json", "simplecache://a.json", "simplecache://x::a.json", "libarchive://a::z", "tar://a::b.tar"),
        *("zip://a.json::https://h/b.zip", "simplecache::zip://a::s3://b/c", "memory://a.json::s3://b/c"),
    ],
)
def test_protocols_that_are_not_listed_are_an_error_that_names_those_that_are(
    check: Call, memory: Any, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_: pytest.fail("a store is opened"))
    listed = "; https, http, s3, gs, gcs, az, abfs, hf, memory, file are read, and simplecache and filecache "
    assert listed in errors_of(check, url)


SECRETS: Final = ("hush", "token", "AKIA")


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hush/token@127.0.0.1:1/a.onnx?sig=AKIA",
        "http://me:hush@127.0.0.1:1/a.json?token",
        "simplecache::http://hush@127.0.0.1:1/a.json?X-Amz-Signature=AKIA",
        "zip://a.json::http://hush@127.0.0.1:1/z.zip?X-Amz-Signature=AKIA",
        "s3://AKIA:hush@b/a.onnx",
        "dask://me:hush@h/a?token=AKIA",
        "memory://me:hush@bad.json",
        "memory://me:hush@*.xml?token=1",
    ],
)
def test_credentials_in_a_url_are_in_no_report_and_no_error(
    call: Call, check: Call, memory: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(memory, "/me:hush@bad.json", BAD)
    monkeypatch.setattr("sys.argv", ["dml-tile", "check", url])
    outputs = [f"--format={name}:{name}" for name in FORMATS]
    results = [
        CliRunner().invoke(application(), ["check", url, *outputs, "--write-baseline", "known"], obj=["check", url]),
        *(call(command, url) for command in ("check", "lower", "show", "run")),
        call("emit", url, "--lang", "json"),
    ]
    written = [Path(name).read_text() for name in (*FORMATS, "known")]
    try:
        written.append(str(check_model(url)))
    except InputError as error:
        written.append(str(error))
    for text in (*written, *(result.output for result in results)):
        assert not re.search("|".join(SECRETS), text)
    assert "dml-tile check" in Path("html").read_text()
    assert "***" in Path("html").read_text()


def test_hidden_credentials_make_no_pattern_of_a_url(check: Call) -> None:
    result = check("http://me:hush@127.0.0.1:1/a.json")
    problem = "cannot be read: ClientConnectorError"
    assert (result.exit_code, result.stderr) == (2, f"dml-tile: http://***@127.0.0.1:1/a.json: {problem}\n")


def test_credentials_are_looked_for_in_linear_time() -> None:
    started = time.process_time()
    assert Url("memory://e", "://:" * 10**6).file == "://:" * 10**6
    assert "hush" not in source_named("s3://me:hush@b/" + "://:" * 10**6)
    assert time.process_time() - started < 5


NAMES: Final = ("http://127.0.0.1:{port}/x.json", "file://{folder}/x.json", "plain::y.json", "reference::x.json")


def test_files_of_a_folder_are_read_from_its_store(memory: Any, check: Call, tmp_path: Path) -> None:
    write("x.json", BAD)
    with served(tmp_path) as (root, requested):
        port = root.rpartition(":")[2]
        names = [name.format(port=port, folder=tmp_path) for name in NAMES]
        for name in (*names, "a.json"):
            put(memory, f"/zoo/{name}", TILE)
        output = json.loads(check("memory://zoo", "--format", "json").stdout)
    assert not requested
    assert {one["verdict"] for one in output["results"]} == {"accepted"}
    found = [source["source"] for source in output["sources"] if not source["passed_over"]]
    assert sorted(found) == sorted(f"memory:///zoo/{name}" for name in (*names, "a.json"))


def test_a_file_that_its_store_takes_for_another_is_an_error(
    memory: Any, check: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(memory, "/zoo/a.json", TILE)
    found = {f"/zoo/{name}": {"type": "file"} for name in ("a.json", "a.json/")}
    monkeypatch.setattr(type(memory), "glob", lambda *_, **__: found)
    result = check("memory://zoo/*")
    assert result.exit_code == 2
    assert result.stderr == "dml-tile: memory:///zoo/a.json/: its store takes this name for another one\n"
    assert result.stdout.startswith("memory:///zoo/a.json: accepted")


# Models


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"m.onnx": 100}, "m.onnx: has more than 99 bytes with its weights, the most that is fetched"),
        ({"m.xml": 50, "m.bin": 50}, "m.xml: has more than 99 bytes with its weights, the most that is fetched"),
        ({"m.onnx": 99}, "m.onnx: is not an ONNX model"),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_model_over_the_bound_is_not_fetched(
    memory: Any, check: Call, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], problem: str, is_known: bool
) -> None:
    for name, size in sizes.items():
        put(memory, f"/{name}", b"x" * size)
    monkeypatch.setattr(remote, "MAX_FETCHED_BYTES", 99)
    if not is_known:
        monkeypatch.setattr(type(memory), "info", lambda _, path: {"name": path, "type": "file", "size": None})
    assert errors_of(check, f"memory://{next(iter(sizes))}").startswith(f"dml-tile: memory://{problem}")


@pytest.mark.parametrize(
    ("url", "waits_in"),
    [
        *(("memory:///zoo/m.onnx", "info"), ("memory:///zoo/a.json", "open"), ("memory://zoo/a.json", "isfile")),
        *(("memory://zoo", "find"), ("memory://zoo/**.json", "glob"), ("memory://zoo", "open")),
    ],
)
@pytest.mark.parametrize("command", ["check", "show"])
def test_a_url_is_given_up_when_a_client_waits_too_long(
    memory: Any, call: Call, monkeypatch: pytest.MonkeyPatch, url: str, waits_in: str, command: str
) -> None:
    put(memory, "/zoo/m.onnx", MODEL)
    put(memory, "/zoo/a.json", TILE)
    answers = Event()
    monkeypatch.setattr(urls, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(remote, "MAX_SECONDS_OF_SEVERAL", 0.1)
    monkeypatch.setattr(type(memory), waits_in, lambda *_, **__: answers.wait())
    try:
        first, *_ = call(command, url).stderr.splitlines()
    finally:
        answers.set()
    where = "memory:///zoo/a.json" if (url, waits_in) == ("memory://zoo", "open") else url
    assert first == f"dml-tile: {where}: fetching it took longer than 0.1 s"


def test_the_files_of_a_folder_share_one_deadline(memory: Any, check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        put(memory, f"/zoo/{name}.jsonl", TILE)
    opened = type(memory).open

    def opened_late(*arguments: Any, **options: Any) -> Any:
        time.sleep(0.3)
        return opened(*arguments, **options)

    monkeypatch.setattr(remote, "MAX_SECONDS_OF_SEVERAL", 1)
    monkeypatch.setattr(type(memory), "open", opened_late)
    assert "d.jsonl: fetching it took longer than 1 s" in errors_of(check, "memory://zoo")


@pytest.mark.parametrize("text", ["<net>" + "<data " * 200_000, "<net>" + '<data offset="1" ' * 100_000])
def test_a_fetched_xml_file_is_looked_at_in_linear_time(memory: Any, check: Call, text: str) -> None:
    put(memory, "/zoo/m.xml", text.encode())
    started = time.process_time()
    assert errors_of(check, "memory://zoo")
    assert time.process_time() - started < 15


@pytest.mark.parametrize(("url", "names"), [("memory://m.xml", ["m.bin", "m.xml"]), ("memory://m.bin", ["m.bin"])])
def test_a_copy_has_the_files_beside_a_model_and_goes_with_its_block(memory: Any, url: str, names: list[str]) -> None:
    for path in ("m.xml", "m.bin", "other.bin"):
        put(memory, f"/{path}", path.encode())
    with remote.RemoteFiles().local_copy(Url(url)) as copy:
        assert copy.read_text() == url.removeprefix("memory://")
        assert sorted(path.name for path in copy.parent.rglob("*") if path.is_file()) == names
    assert not copy.parent.exists()


def test_a_model_in_memory_is_checked_as_a_file_is(memory: Any, check: Call) -> None:
    names = ["a.json", "lines.jsonl", "two_tiles.onnx", "two_tiles.xml"]
    for name in (*names[2:], "two_tiles.bin"):
        shutil.copy(MODELS / name, name)
    write("a.json", BAD)
    write("lines.jsonl", f"{json.dumps(TILE)}\n{{\n")
    for name in (*names, "two_tiles.bin"):
        put(memory, f"/zoo/{name}", Path(name).read_bytes())
    for form in ("json", "junit"):
        here = check(*names, "--format", form)
        there = check(*(f"memory://zoo/{name}" for name in names), "--format", form)
        expected = without_times(here.stdout).split()
        assert without_times(there.stdout).replace("memory://zoo/", "").split() == expected
        assert there.stderr.replace("memory://zoo/", "") == here.stderr
        assert there.exit_code == here.exit_code == 2


def test_folders_and_patterns_are_expanded(memory: Any, check: Call) -> None:
    for path in ("b.onnx", "in/a.onnx", ".hidden/c.onnx", "saved/saved_model.pb"):
        put(memory, f"/zoo/{path}", MODEL)
    for path in ("/zoo/tile.json", "/zoo/readme.md", "/bare/readme.md"):
        put(memory, path, TILE)
    put(memory, "/zoo/package.json", {"name": "other"})
    for arguments, names in (
        (["memory://zoo"], ["b.onnx", "in/a.onnx", "tile.json"]),
        (["memory://zoo/*.onnx", "memory://zoo/**/a.onnx"], ["b.onnx", "in/a.onnx"]),
        (["memory://zoo/*.onnx", "memory://zoo/b.onnx", "memory://zoo/in"], ["b.onnx", "in/a.onnx"]),
        (["memory://zoo", "--exclude", "in"], ["b.onnx", "tile.json"]),
    ):
        output = json.loads(check(*arguments, "--format", "json").stdout)
        found = [source["source"] for source in output["sources"] if not source["passed_over"]]
        assert found == [f"memory:///zoo/{name}" for name in names]
    assert "memory://zoo/*.xml: no file matches the pattern" in check("memory://zoo/*.xml").stderr
    assert "memory://bare: the folder holds no models" in check("memory://bare").stderr


def test_a_server_s_files_are_checked(check: Call, tmp_path: Path) -> None:
    shutil.copy(MODELS / "two_tiles.onnx", tmp_path)
    write("a.json", BAD)
    write("[a].json", TILE)
    with served(tmp_path) as (root, _):
        names = [(f"{root}/a.json", 1), (f"simplecache::{root}/two_tiles.onnx", 2), (f"{root}/%5Ba].json", 1)]
        assert sources(check, *(name for name, _ in names)) == names
        assert sources(check, f"{root}/two_tiles.onnx?token=1") == [(f"{root}/two_tiles.onnx?***", 2)]


LISTS_NO_FILES: Final = "web servers list no files: name each file, not a folder or a pattern"
FILECACHE: Final = "has filecache over a web server, whose files it would list; simplecache does not"
MISSING: Final = "there is no such file"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        *((url, LISTS_NO_FILES) for url in ("{}/", "{}/*.json", "{}/in/[ab].json", "simplecache://x::{}/*.json")),
        *((url, FILECACHE) for url in ("filecache::{}/a.json", "simplecache::filecache://x::{}/a.json")),
        *((url, MISSING) for url in ("{}/a.json", "simplecache://x::{}/a.json")),
    ],
)
def test_no_page_of_a_web_server_is_searched_for_files(check: Call, tmp_path: Path, url: str, problem: str) -> None:
    (tmp_path / "index.html").write_text(f"<a{' ' * 2000}'>")  # which fsspec would search for 26 s
    started = time.process_time()
    with served(tmp_path) as (root, requested):
        errors = errors_of(check, url.format(root))
    assert time.process_time() - started < 5
    assert not re.search(r"/ HTTP", str(requested))
    assert errors.startswith(f"dml-tile: {url.format(root)}: {problem}")


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
        ("nowhere://a.json", None, "has the protocol 'nowhere'"),
        ("http://127.0.0.1:1/a.onnx", None, "cannot be read: ClientConnectorError: Cannot connect to host 127.0.0.1:1"),
        ("zip://a.json::a.zip", None, "has the protocol 'zip'"),
    ],
)
def test_what_is_unreadable_is_its_own_problem(
    url: str, content: bytes | None, problem: str, memory: Any, check: Call
) -> None:
    put(memory, "/good.json", TILE)
    if content is not None:
        put(memory, url.removeprefix("memory:/"), content)
    result = check(url, "memory://good.json")
    assert result.exit_code == 2
    assert result.stderr.replace(":1:1: ", ": ").startswith(f"dml-tile: {url}: {problem}")
    assert "memory://good.json: accepted" in result.stdout


def test_without_fsspec_a_url_says_what_to_install(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    problem = "is a URL, which fsspec reads: pip install fsspec"
    assert check("s3://b/a.json").stderr == f"dml-tile: s3://b/a.json: {problem}\n"


def test_plain_checks_import_no_fsspec() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from dml_tile.cli.app import application;"
        f"print(CliRunner().invoke(application(), ['check', {str(EXAMPLES / 'tile.json')!r}]).exit_code);"
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
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
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
def test_a_bucket_is_checked(bucket: Callable[[str, bytes], None], check: Call) -> None:
    for key, content in {"in/two_tiles.onnx": MODEL, "in/a.json": TILE, "top.onnx": MODEL}.items():
        bucket(key, encoded(content))
    found = [("s3://zoo/in/a.json", 1), ("s3://zoo/in/two_tiles.onnx", 2), ("s3://zoo/top.onnx", 2)]
    for names in (["s3://zoo"], ["s3://zoo/**/*.json", "s3://zoo/*.onnx", "s3://zoo/in/*.onnx"]):
        assert sorted(sources(check, *names)) == found
    result = check("s3://zoo/none.onnx", "s3://nobucket/a.onnx", "s3://zoo/in/a.json", "--jobs", "2")
    assert "s3://zoo/none.onnx: there is no such file" in result.stderr
    assert "s3://nobucket/a.onnx: there is no such file" in result.stderr
    assert "s3://zoo/in/a.json: accepted" in result.stdout


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_bucket_without_a_key_is_a_problem(bucket: object, check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    problem = "dml-tile: s3://zoo/a.onnx: cannot be read: NoCredentialsError"
    assert errors_of(check, "s3://zoo/a.onnx").startswith(problem)
