"""The descriptors that ONNX Runtime, Chromium, TensorFlow and DirectMLX hand to DirectML for a tile.

BACK_ENDS         the back ends by name, as ``check --via`` takes them
back_end_named()  looks one up
hand_over()       the handover of a request at a target
BackEnd           a runtime that hands tiles to DirectML
Handover, Fate    the descriptor that it hands over, or the reason why there is none

Each module is one back end: a pure function of a request and a target that follows the source files it names. Which
released versions contain those files is not known.
"""

from dml_tile.back_ends.rules import Fate as Fate
from dml_tile.back_ends.rules import Handover as Handover
from dml_tile.back_ends.table import BACK_ENDS as BACK_ENDS
from dml_tile.back_ends.table import BackEnd as BackEnd
from dml_tile.back_ends.table import back_end_named as back_end_named
from dml_tile.back_ends.table import hand_over as hand_over
