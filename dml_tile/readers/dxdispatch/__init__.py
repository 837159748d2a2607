"""DxDispatch's JSON models: Microsoft's own format for running DirectML operators from a file.

Page: https://github.com/microsoft/DirectML/blob/master/DxDispatch/doc/Guide.md
"""
