"""A simulated IDMLDevice: the life cycle of operators, binding tables and dispatch, as a chosen DirectML has it.

Methods have the C methods' names in snake_case, and their order of life: create, compile, initialise, bind, dispatch.
What C returns as an HRESULT is raised as DmlError; what returns nothing removes the device. Where DirectML would crash,
DmlError says so.
"""

from __future__ import annotations

from dml_tile.bindings.resources import BindingDesc as BindingDesc
from dml_tile.bindings.resources import Buffer as Buffer
from dml_tile.bindings.resources import BufferArrayBinding as BufferArrayBinding
from dml_tile.bindings.resources import BufferBinding as BufferBinding
from dml_tile.device.device import Device as Device
from dml_tile.device.dispatchables import BindingProperties as BindingProperties
from dml_tile.device.dispatchables import CompiledOperator as CompiledOperator
from dml_tile.device.dispatchables import Operator as Operator
from dml_tile.device.dispatchables import OperatorInitializer as OperatorInitializer
from dml_tile.device.recorder import CommandRecorder as CommandRecorder
from dml_tile.device.table import BindingTable as BindingTable
from dml_tile.device.table import BindingTableDesc as BindingTableDesc
