"""A simulated IDMLDevice: operators, binding tables and dispatch, as in the DirectML that is simulated.

Methods have the names of the C methods, in snake_case, and are called in the same order: create, compile, initialise,
bind, dispatch. A method that returns an HRESULT in C raises DmlError instead; one that returns nothing removes the
device. Where DirectML would crash, DmlError says so.
"""

from __future__ import annotations

from dml_tile.bindings.resources import BindingDesc as BindingDesc
from dml_tile.bindings.resources import Buffer as Buffer
from dml_tile.bindings.resources import BufferArrayBinding as BufferArrayBinding
from dml_tile.bindings.resources import BufferBinding as BufferBinding
from dml_tile.bindings.resources import Direct3DDevice as Direct3DDevice
from dml_tile.device.command_list import CommandList as CommandList
from dml_tile.device.command_list import RecordedDispatch as RecordedDispatch
from dml_tile.device.device import Device as Device
from dml_tile.device.device import LevelLike as LevelLike
from dml_tile.device.dispatchables import BindingProperties as BindingProperties
from dml_tile.device.dispatchables import CompiledOperator as CompiledOperator
from dml_tile.device.dispatchables import Dispatchable as Dispatchable
from dml_tile.device.dispatchables import Operator as Operator
from dml_tile.device.dispatchables import OperatorInitializer as OperatorInitializer
from dml_tile.device.dispatches import CommandRecorder as CommandRecorder
from dml_tile.device.table import Bindings as Bindings
from dml_tile.device.table import BindingTable as BindingTable
from dml_tile.device.table import BindingTableDesc as BindingTableDesc
