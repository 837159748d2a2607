"""Headers of .npy files, true and lying ones."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dml_tile.formats.npy import open_npy


def with_header(path: Path, header: str | bytes, version: int = 1, length: int | None = None) -> Path:
    """A file with that header, and 8 bytes of values."""
    text = header if isinstance(header, bytes) else header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + text + bytes(8))
    return path


def header_of(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">i2", "|u1", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_come_in_c_order_and_native_bytes(tmp_path: Path, dtype: str, order: str) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    np.save(tmp_path / "a.npy", np.asarray(array, order=order))  # type: ignore[call-overload]
    file = open_npy(tmp_path / "a.npy")
    assert file.nbytes == array.nbytes
    place = np.empty(file.nbytes, np.uint8)
    file.read_into(place)
    assert place.view(array.dtype.newbyteorder("=")).tolist() == array.ravel().tolist()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("left", [0, 4, 200])
def test_a_file_that_shrinks_before_its_values_are_read_is_refused(tmp_path: Path, order: str, left: int) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.asarray(np.ones((20, 5), np.float32), order=order))  # type: ignore[call-overload]
    file = open_npy(path)
    os.truncate(path, file.offset + left)
    with pytest.raises(ValueError, match=f"it changed while it was read: {left} of 400 bytes are left"):
        file.read_into(np.empty(file.nbytes, np.uint8))


@pytest.mark.parametrize("fortran_order", [True, False])
def test_dimensions_of_one_may_be_many(tmp_path: Path, fortran_order: bool) -> None:
    shape = f"({'1, ' * 100}2)"
    header = f"{{'descr': '<f4', 'fortran_order': {fortran_order}, 'shape': {shape}, }}"
    file = open_npy(with_header(tmp_path / "a.npy", header))
    place = np.ones(file.nbytes, np.uint8)
    file.read_into(place)
    assert place.tolist() == [0] * 8


@pytest.mark.parametrize(("shape", "version"), [("(2,)", 2), ("(2L,)", 1), ("(2L,)", 2)])
def test_version_2_and_what_python_2_wrote_are_read(tmp_path: Path, shape: str, version: int) -> None:
    assert open_npy(with_header(tmp_path / "a.npy", header_of(shape), version)).shape == (2,)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (header_of("(3,)"), "promises 12 bytes of values, but it has 8"),
        (header_of("(9999999999999,)"), "promises 39999999999996 bytes"),
        (header_of(f"({10**30},)"), "promises"),
        (header_of("(True, 2)"), "the shape in its header is none"),
        (header_of("(-1,)"), "the shape in its header is none"),
        (header_of("(2,)", "'|O'"), "holds Python objects"),
        (header_of("7"), "no header"),
        ("(" * 9000, "no header"),
        ("{1:" * 3000, "no header"),
        ("-" * 9000 + "1", "no header"),
        (b"\xff" * 100, "no header"),
        ("", "no header"),
        ("[" * 20000, "no header"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_header_that_lies_or_is_none_is_refused(
    tmp_path: Path, header: str | bytes, message: str, version: int
) -> None:
    with pytest.raises(ValueError, match=message):
        open_npy(with_header(tmp_path / "a.npy", header, version))


ZIP = b"PK\x05\x06" + bytes(18)


@pytest.mark.parametrize("contents", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x09", b"not an array at all", ZIP])
def test_what_is_no_npy_file_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(contents)
    with pytest.raises(ValueError, match="no header"):
        open_npy(tmp_path / "a.npy")


def test_a_promised_length_takes_no_memory(tmp_path: Path) -> None:
    path = with_header(tmp_path / "a.npy", header_of("(2,)"), version=2, length=2**32 - 1)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="no header"):
            open_npy(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
