// Stands for DirectML.h in the tests in C++; `-I tests/cpp` finds it. To the structures of a tile it adds those of a graph,
// and the interfaces of a device: names, identifiers and the order of methods as Microsoft's reference pages and headers have them, no text of these.
#ifndef DML_TILE_TESTS_DIRECTML_H
#define DML_TILE_TESTS_DIRECTML_H

#include "../data/DirectML_stand_in.h"

#define STDMETHODCALLTYPE

typedef uint32_t ULONG;
typedef uintptr_t SIZE_T;
typedef const wchar_t* PCWSTR;

struct GUID
{
    uint32_t Data1;
    uint16_t Data2, Data3;
    uint8_t Data4[8];
};

typedef const GUID& REFGUID;
typedef const GUID& REFIID;

enum DML_EXECUTION_FLAGS { DML_EXECUTION_FLAG_NONE = 0, DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE = 4 };

struct DML_BINDING_TABLE_DESC;
struct IDMLOperator;

enum DML_GRAPH_NODE_TYPE { DML_GRAPH_NODE_TYPE_INVALID, DML_GRAPH_NODE_TYPE_OPERATOR, DML_GRAPH_NODE_TYPE_CONSTANT };

enum DML_GRAPH_EDGE_TYPE {
    DML_GRAPH_EDGE_TYPE_INVALID,
    DML_GRAPH_EDGE_TYPE_INPUT,
    DML_GRAPH_EDGE_TYPE_OUTPUT,
    DML_GRAPH_EDGE_TYPE_INTERMEDIATE
};

struct DML_GRAPH_NODE_DESC
{
    DML_GRAPH_NODE_TYPE Type;
    const void* Desc;
};

struct DML_OPERATOR_GRAPH_NODE_DESC
{
    IDMLOperator* Operator;
    const char* Name;
};

struct DML_CONSTANT_DATA_GRAPH_NODE_DESC
{
    const void* Data;
    SIZE_T DataSize;
    const char* Name;
};

struct DML_GRAPH_EDGE_DESC
{
    DML_GRAPH_EDGE_TYPE Type;
    const void* Desc;
};

struct DML_INPUT_GRAPH_EDGE_DESC
{
    UINT GraphInputIndex, ToNodeIndex, ToNodeInputIndex;
    const char* Name;
};

struct DML_OUTPUT_GRAPH_EDGE_DESC
{
    UINT FromNodeIndex, FromNodeOutputIndex, GraphOutputIndex;
    const char* Name;
};

struct DML_INTERMEDIATE_GRAPH_EDGE_DESC
{
    UINT FromNodeIndex, FromNodeOutputIndex, ToNodeIndex, ToNodeInputIndex;
    const char* Name;
};

struct DML_GRAPH_DESC
{
    UINT InputCount, OutputCount, NodeCount;
    const DML_GRAPH_NODE_DESC* Nodes;
    UINT InputEdgeCount;
    const DML_GRAPH_EDGE_DESC* InputEdges;
    UINT OutputEdgeCount;
    const DML_GRAPH_EDGE_DESC* OutputEdges;
    UINT IntermediateEdgeCount;
    const DML_GRAPH_EDGE_DESC* IntermediateEdges;
};

struct IUnknown
{
    virtual HRESULT QueryInterface(REFIID riid, void** object) = 0;
    virtual ULONG AddRef() = 0;
    virtual ULONG Release() = 0;
};

struct IDMLObject : IUnknown
{
    virtual HRESULT GetPrivateData(REFGUID guid, UINT* size, void* data) = 0;
    virtual HRESULT SetPrivateData(REFGUID guid, UINT size, const void* data) = 0;
    virtual HRESULT SetPrivateDataInterface(REFGUID guid, IUnknown* data) = 0;
    virtual HRESULT SetName(PCWSTR name) = 0;
};

struct IDMLDeviceChild : IDMLObject
{
    virtual HRESULT GetDevice(REFIID riid, void** device) = 0;
};

struct IDMLOperator : IDMLDeviceChild
{
};

struct IDMLPageable : IDMLDeviceChild
{
};

struct DML_BINDING_PROPERTIES
{
    UINT RequiredDescriptorCount;
    UINT64 TemporaryResourceSize, PersistentResourceSize;
};

struct IDMLDispatchable : IDMLPageable
{
    virtual DML_BINDING_PROPERTIES GetBindingProperties() = 0;
};

struct IDMLCompiledOperator : IDMLDispatchable
{
};

struct IDMLDevice : IDMLObject
{
    virtual HRESULT CheckFeatureSupport(DML_FEATURE, UINT, const void* query, UINT, void* data) = 0;
    virtual HRESULT CreateOperator(const DML_OPERATOR_DESC* desc, REFIID riid, void** object) = 0;
    virtual HRESULT CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS, REFIID riid, void** object) = 0;
    virtual HRESULT CreateOperatorInitializer(
        UINT count, IDMLCompiledOperator* const* operators, REFIID riid, void** object) = 0;
    virtual HRESULT CreateCommandRecorder(REFIID riid, void** object) = 0;
    virtual HRESULT CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, REFIID riid, void** object) = 0;
    virtual HRESULT Evict(UINT count, IDMLPageable* const* objects) = 0;
    virtual HRESULT MakeResident(UINT count, IDMLPageable* const* objects) = 0;
    virtual HRESULT GetDeviceRemovedReason() = 0;
    virtual HRESULT GetParentDevice(REFIID riid, void** object) = 0;
};

#if DML_TARGET_VERSION >= 0x2100
struct IDMLDevice1 : IDMLDevice
{
    virtual HRESULT CompileGraph(const DML_GRAPH_DESC* desc, DML_EXECUTION_FLAGS, REFIID riid, void** object) = 0;
};
#endif

#endif
