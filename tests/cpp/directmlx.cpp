// A graph of DirectMLX's, two tiles and an identity, of which no operator is mentioned here: `directmlx FILE`.
#include <DirectML.h>

// What an executable that names identifiers of interfaces needs on Linux, as docs/cpp.md says.
__CRT_UUID_DECL(IDMLDevice, 0x6DBD6437, 0x96FD, 0x423F, 0xA9, 0x8C, 0xAE, 0x5E, 0x7C, 0x2A, 0x57, 0x3F)
__CRT_UUID_DECL(IDMLDevice1, 0xA0884F9A, 0xD2BE, 0x4355, 0xAA, 0x5D, 0x59, 0x01, 0x28, 0x1A, 0xD1, 0xD2)
__CRT_UUID_DECL(IDMLOperator, 0x26CAAE7A, 0x3081, 0x4633, 0x95, 0x81, 0x22, 0x6F, 0xBE, 0x57, 0x69, 0x5D)
__CRT_UUID_DECL(IDMLCompiledOperator, 0x6B15E56A, 0xBF5C, 0x4902, 0x92, 0xD8, 0xDA, 0x3A, 0x65, 0x0A, 0xFE, 0xA4)

#include <DirectMLX.h>

#include "stand_in_device.h"

#include <dml_tile/capturing_device.h>

using Microsoft::WRL::ComPtr;

int main(int count, char** arguments)
{
    REQUIRE(count == 2);
    StandInDevice device;
    device.keeps_calls = false;
    {
        ComPtr<IDMLDevice1> capturing;
        REQUIRE(dml_tile::CreateCapturingDevice(device.get(), arguments[1], IID_PPV_ARGS(&capturing)) == S_OK);
        dml::Graph graph(capturing.Get());
        const dml::TensorDesc half = {DML_TENSOR_DATA_TYPE_INT64, {1, 1, 2, 3}};
        const auto input = dml::InputTensor(graph, 0, half);
        const auto once = dml::Tile(input, std::vector<uint32_t>{1, 1, 2, 1});
        const auto same = dml::Identity(once);
        const auto twice = dml::Tile(same, std::vector<uint32_t>{1, 1, 1, 3});
        graph.Compile(DML_EXECUTION_FLAG_NONE, {twice});
    }
    REQUIRE(device.count() == 1);
    device.Release();
    return EXIT_SUCCESS;
}
