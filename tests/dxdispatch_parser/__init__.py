"""DxDispatch's own parser, compiled and asked what it makes of random models; its answers are in tests/data.

`python -m tests.dxdispatch_parser DIRECTML DIRECTX_HEADERS` records them anew, from clones of microsoft/DirectML and
microsoft/DirectX-Headers. It takes clang++, rapidjson, fmt and GSL (Debian: rapidjson-dev libfmt-dev libmsgsl-dev).
"""
