// `test_tiles in-pairs TARGET` passes; `test_tiles odd TARGET` fails, and prints why DirectML would refuse the tile.
#include "tile.h"

#include <pybind11/embed.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace py = pybind11;

// The findings of a descriptor at a target, one a line; none if DirectML would accept it.
std::string findings(const DML_OPERATOR_DESC& desc, const std::string& target)
{
    py::module_ dml_tile = py::module_::import("dml_tile");
    py::object read = dml_tile.attr("read_operator_desc")(reinterpret_cast<std::uintptr_t>(&desc));
    std::string lines;
    for (py::handle finding : dml_tile.attr("check")(read, target)) { lines += std::string(py::str(finding)) + "\n"; }
    return lines;
}

int main(int count, char** arguments)
{
    if (count != 3) { return 2; }
    const bool is_odd = arguments[1] == std::string("odd");
    py::scoped_interpreter python;
    const HalvesTwice tile(is_odd ? 3 : 4);
    const std::string refused = findings(tile.desc(), arguments[2]);
    std::printf("%s at %s:\n%s", arguments[1], arguments[2], refused.empty() ? "accepted\n" : refused.c_str());
    return refused.empty() ? 0 : 1;
}
