// Graphs of DirectMLX's. `directmlx FILE` captures rows that are gathered, tiled and passed through GELU; with one more
// argument, also a convolution by constants, and products that are joined and ranked.
#include <DirectML.h>

// What an executable that names identifiers of interfaces needs on Linux, as docs/cpp.md says.
__CRT_UUID_DECL(IDMLDevice, 0x6DBD6437, 0x96FD, 0x423F, 0xA9, 0x8C, 0xAE, 0x5E, 0x7C, 0x2A, 0x57, 0x3F)
__CRT_UUID_DECL(IDMLDevice1, 0xA0884F9A, 0xD2BE, 0x4355, 0xAA, 0x5D, 0x59, 0x01, 0x28, 0x1A, 0xD1, 0xD2)
__CRT_UUID_DECL(IDMLOperator, 0x26CAAE7A, 0x3081, 0x4633, 0x95, 0x81, 0x22, 0x6F, 0xBE, 0x57, 0x69, 0x5D)
__CRT_UUID_DECL(IDMLCompiledOperator, 0x6B15E56A, 0xBF5C, 0x4902, 0x92, 0xD8, 0xDA, 0x3A, 0x65, 0x0A, 0xFE, 0xA4)

#include <DirectMLX.h>

#include <dml_tile/capturing_device.h>
#include <dml_tile/null_device.h>

#include <cstdlib>

using Microsoft::WRL::ComPtr;

void compile_others(IDMLDevice1* device)
{
    const auto type = DML_TENSOR_DATA_TYPE_FLOAT32;
    const float weights[4] = {1, 2, 3, 4};
    {
        dml::Graph graph(device);
        const auto image = dml::InputTensor(graph, 0, {type, {1, 1, 8, 8}});
        const auto bytes = reinterpret_cast<const dml::Byte*>(weights);
        const auto filter = dml::ConstantData(graph, dml::Span<const dml::Byte>(bytes, sizeof weights), {type, {1, 1, 2, 2}});
        const auto filtered = dml::Convolution(image, filter);
        const auto larger = dml::Upsample2D(dml::ActivationRelu(filtered), {2, 2}, DML_INTERPOLATION_MODE_LINEAR);
        const auto mean = dml::Reduce(larger, DML_REDUCE_FUNCTION_AVERAGE, dml::Span<const uint32_t>{2, 3});
        graph.Compile(DML_EXECUTION_FLAG_NONE, {dml::Cast(mean, DML_TENSOR_DATA_TYPE_FLOAT16)});
    }
    dml::Graph graph(device);
    const auto a = dml::InputTensor(graph, 0, {type, {1, 1, 4, 4}});
    const auto b = dml::InputTensor(graph, 1, {type, {1, 1, 4, 4}});
    const auto products = dml::Join({dml::Gemm(a, b), a * b + 1.0f}, 3);
    const auto top = dml::TopK(dml::ActivationSoftmax(products), 3, 2, DML_AXIS_DIRECTION_DECREASING);
    graph.Compile(DML_EXECUTION_FLAG_NONE, {top.value, top.index});
}

int main(int count, char** arguments)
{
    ComPtr<IDMLDevice> device;
    ComPtr<IDMLDevice1> capturing;
    DMLX_THROW_IF_FAILED(dml_tile::CreateNullDevice(IID_PPV_ARGS(&device), 0x6200));
    DMLX_THROW_IF_FAILED(dml_tile::CreateCapturingDevice(device.Get(), arguments[1], IID_PPV_ARGS(&capturing)));
    dml::Graph graph(capturing.Get());
    const auto table = dml::InputTensor(graph, 0, {DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 10, 4}});
    const auto indices = dml::InputTensor(graph, 1, {DML_TENSOR_DATA_TYPE_INT64, {1, 1, 1, 3}});
    graph.PushName("embedding");
    const auto rows = dml::Gather(table, indices, 2, 1);
    graph.PopName();
    const auto wide = dml::Tile(rows, std::vector<uint32_t>{1, 1, 1, 2});
    const auto compiled = graph.Compile(DML_EXECUTION_FLAG_NONE, {dml::ActivationGelu(wide)});
    if (count == 3) { compile_others(capturing.Get()); }
    return compiled->GetBindingProperties().RequiredDescriptorCount == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
