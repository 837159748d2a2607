// `test_tiles FILE HALVES...`: the tests of an application, which write down each descriptor that they make.
#include "tile.h"

#include <dml_tile/capture.h>

#include <cstdlib>

int main(int count, char** arguments)
{
    bool is_written = count > 1;
    for (int i = 2; i < count; ++i)
    {
        const HalvesTwice tile(static_cast<UINT>(std::strtoul(arguments[i], nullptr, 10)));
        is_written = dml_tile::capture(arguments[1], tile.desc()) && is_written;
    }
    return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}
