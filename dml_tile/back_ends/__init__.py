"""How ONNX Runtime, Chromium, TensorFlow and DirectMLX lower a tile to DirectML, and what DirectML says of that.

Each module is one back end's, a pure function from a request and a target to what it hands over, as the files that it
names do it. Which versions do it so is not known by number.

BACK_ENDS         the back ends by name, as ``check --via`` takes them
hand_over()       what one makes of a request at a target
checked()         the findings on that
checked_node()    the same for a model's tile, which may be known in part only
note_on()         what else there is to know of that
back_end_named()  a back end by its name
"""

from __future__ import annotations

from dml_tile.back_ends.table import BACK_ENDS as BACK_ENDS
from dml_tile.back_ends.table import BackEnd as BackEnd
from dml_tile.back_ends.table import back_end_named as back_end_named
from dml_tile.back_ends.table import checked as checked
from dml_tile.back_ends.table import checked_node as checked_node
from dml_tile.back_ends.table import hand_over as hand_over
from dml_tile.back_ends.table import note_on as note_on
