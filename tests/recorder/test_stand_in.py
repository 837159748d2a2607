"""The stand-in is generated from headers; it takes a compiler to build it."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from tests.recorder.stand_in import LIBRARIES, BuildError, build, methods, neutral_class, why_not_buildable

HEADER = """
    MIDL_INTERFACE("1")
    IBase : public IUnknown
    {
    public:
        virtual HRESULT STDMETHODCALLTYPE SetName(
            _In_z_  LPCWSTR Name) = 0;

        virtual HRESULT STDMETHODCALLTYPE Map(
            UINT Subresource,
            _Outptr_opt_result_bytebuffer_(_Inexpressible_("size"))  void **ppData) = 0;
    };

    MIDL_INTERFACE("2")
    IMore : public IBase
    {
    public:
#if defined(_MSC_VER) || !defined(_WIN32)
        virtual SIZE STDMETHODCALLTYPE GetSize( void) = 0;
#else
        virtual SIZE *STDMETHODCALLTYPE GetSize(SIZE * RetVal) = 0;
#endif
        virtual void STDMETHODCALLTYPE Clear( void) = 0;
    };
"""


def test_a_class_has_the_methods_for_linux_of_its_interface_and_those_that_it_extends_without_annotations() -> None:
    text = neutral_class(HEADER, "IMore", "Neutral")
    assert "id == IID_IUnknown || id == IID_IMore || id == IID_IBase" in text
    assert "HRESULT STDMETHODCALLTYPE SetName(LPCWSTR Name) override { return S_OK; }" in text
    assert "HRESULT STDMETHODCALLTYPE Map(UINT Subresource, void **ppData) override { return E_NOTIMPL; }" in text
    assert "SIZE STDMETHODCALLTYPE GetSize(void) override { return {}; }" in text
    assert "void STDMETHODCALLTYPE Clear(void) override {  }" in text
    assert text.index(" Map(") < text.index(" GetSize(") < text.index(" Clear(")


def test_an_interface_that_no_header_has_is_named() -> None:
    with pytest.raises(BuildError, match="no interface IOther"):
        methods(HEADER, "IOther")


def test_missing_headers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.recorder.stand_in.INCLUDES", tmp_path)
    with pytest.raises(BuildError, match="directx-headers-dev"):
        build(tmp_path / "built")
    assert not (tmp_path / "built").exists()


@pytest.mark.skipif(why_not_buildable() is not None, reason="no headers of Direct3D 12")
class TestBuilding:
    def test_a_missing_compiler_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CXX", "no-such-compiler")
        with pytest.raises(BuildError, match="no-such-compiler is not installed"):
            build(tmp_path)

    @pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
    def test_what_is_built_loads_and_is_not_built_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        build(tmp_path)
        monkeypatch.setenv("CXX", "no-such-compiler")
        build(tmp_path)
        for name in LIBRARIES:
            ctypes.CDLL(str(tmp_path / name))
