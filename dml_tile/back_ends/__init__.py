"""The descriptors that ONNX Runtime and Chromium pass to DirectML for a tile.

BACK_ENDS         the back ends by name, as ``check --via`` takes them
back_end_named()  looks one up
describe()        a back end's result for a request at a target
BackEnd           a runtime that passes tiles to DirectML
BackEndResult     its descriptor of a tile, or the reason why there is none
Outcome           the kinds of results

Each module is one back end: a pure function of a request and a target that follows the source files it names. Which
released versions contain those files is not known.
"""

from dml_tile.back_ends.rules import BackEndResult as BackEndResult
from dml_tile.back_ends.rules import Outcome as Outcome
from dml_tile.back_ends.table import BACK_ENDS as BACK_ENDS
from dml_tile.back_ends.table import BackEnd as BackEnd
from dml_tile.back_ends.table import back_end_named as back_end_named
from dml_tile.back_ends.table import describe as describe
