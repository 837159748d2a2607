// `null_device FILE` captures an operator and a graph without DirectML, and holds the objects to what the header says.
#include "stand_in_device.h"

#include <dml_tile/null_device.h>

int main(int, char** arguments)
{
    void *made = nullptr, *found = nullptr;
    REQUIRE(dml_tile::CreateNullDevice(ids::device, nullptr) == null_pointer);
    REQUIRE(dml_tile::CreateNullDevice(ids::debug_device, &made) == no_interface && made == nullptr);
    UINT level = 0;
    REQUIRE(dml_tile::CreateNullDevice(ids::device, &made) == 0);
    IDMLDevice* const newest = static_cast<IDMLDevice*>(made);
    REQUIRE(newest->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, 0, nullptr, sizeof level, &level) == 0);
    REQUIRE(level == DML_TARGET_VERSION);
    newest->Release();
    REQUIRE(dml_tile::CreateNullDevice(ids::device1, &made, 0x6200) == 0);
    IDMLDevice1* const device = static_cast<IDMLDevice1*>(made);
    REQUIRE(dml_tile::CreateCapturingDevice(device, arguments[1], ids::device1, &made) == 0);
    IDMLDevice1* const capturing = static_cast<IDMLDevice1*>(made);

    REQUIRE(device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, 0, nullptr, sizeof level, &level) == 0);
    REQUIRE(level == 0x6200);
    REQUIRE(device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, 0, nullptr, 2, &level) == invalid_argument);

    DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, nullptr};
    REQUIRE(dml_tile::capture(arguments[1], desc, 0, capturing));
    REQUIRE(capturing->CreateOperator(&desc, ids::nobodys, nullptr) == 1);
    REQUIRE(capturing->CreateOperator(&desc, ids::nobodys, &made) == 0);
    IDMLOperator* const op = static_cast<IDMLOperator*>(made);
    REQUIRE(op->GetDevice(ids::device, &found) == 0 && found == device);
    device->Release();

    // as names are in UTF-8, in another encoding, and as JSON escapes them
    DML_OPERATOR_GRAPH_NODE_DESC by_operator = {op, "\xC3\xA9\xE2\x98\x83 \xE9\xED\xA0\x80\xC0\x80\xF4\x90\x80\x80 \"\\"};
    DML_GRAPH_NODE_DESC node = {DML_GRAPH_NODE_TYPE_OPERATOR, &by_operator};
    DML_GRAPH_DESC graph = {};
    graph.NodeCount = 1;
    graph.Nodes = &node;
    REQUIRE(capturing->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, ids::nobodys, &made) == 0);
    IDMLCompiledOperator* const compiled = static_cast<IDMLCompiledOperator*>(made);
    REQUIRE(compiled->GetBindingProperties().TemporaryResourceSize == 0);
    REQUIRE(capturing->CreateCommandRecorder(ids::nobodys, &found) == not_implemented && found == nullptr);
    compiled->Release();
    op->Release();
    capturing->Release();
    REQUIRE(device->Release() == 0);
    return EXIT_SUCCESS;
}
