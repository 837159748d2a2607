// A stand-in for the calls of DirectML and Direct3D 12 that run a chain of tiles: names and parameters as Microsoft's
// reference pages document them. Each call is written to standard output; nothing is computed.
#pragma once

#include "../../data/DirectML_stand_in.h"

#include <cstddef>
#include <cstdio>

typedef std::size_t SIZE_T;
const HRESULT S_OK = 0;
inline bool FAILED(HRESULT hr) { return hr < 0; }

// IID_PPV_ARGS gives an identifier and an address; here the identifier is not looked at.
struct Iid {};
#define IID_PPV_ARGS(address) Iid(), address

enum DML_EXECUTION_FLAGS { DML_EXECUTION_FLAG_NONE = 0 };
enum DML_BINDING_TYPE { DML_BINDING_TYPE_NONE, DML_BINDING_TYPE_BUFFER, DML_BINDING_TYPE_BUFFER_ARRAY };
enum D3D12_DESCRIPTOR_HEAP_TYPE { D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV };
enum D3D12_DESCRIPTOR_HEAP_FLAGS { D3D12_DESCRIPTOR_HEAP_FLAG_NONE, D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE };
enum D3D12_HEAP_TYPE { D3D12_HEAP_TYPE_DEFAULT = 1 };
enum D3D12_HEAP_FLAGS { D3D12_HEAP_FLAG_NONE };
enum D3D12_RESOURCE_DIMENSION { D3D12_RESOURCE_DIMENSION_UNKNOWN, D3D12_RESOURCE_DIMENSION_BUFFER };
enum D3D12_TEXTURE_LAYOUT { D3D12_TEXTURE_LAYOUT_UNKNOWN, D3D12_TEXTURE_LAYOUT_ROW_MAJOR };
enum D3D12_RESOURCE_FLAGS { D3D12_RESOURCE_FLAG_NONE = 0, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS = 4 };
enum D3D12_RESOURCE_STATES { D3D12_RESOURCE_STATE_COMMON };
enum D3D12_RESOURCE_BARRIER_TYPE { D3D12_RESOURCE_BARRIER_TYPE_TRANSITION, D3D12_RESOURCE_BARRIER_TYPE_UAV = 2 };

struct D3D12_HEAP_PROPERTIES { D3D12_HEAP_TYPE Type; };
struct DXGI_SAMPLE_DESC { UINT Count; };
struct D3D12_RESOURCE_DESC
{
    D3D12_RESOURCE_DIMENSION Dimension;
    UINT64 Width;
    UINT Height;
    uint16_t DepthOrArraySize, MipLevels;
    DXGI_SAMPLE_DESC SampleDesc;
    D3D12_TEXTURE_LAYOUT Layout;
    D3D12_RESOURCE_FLAGS Flags;
};
struct D3D12_CPU_DESCRIPTOR_HANDLE { SIZE_T ptr; };
struct D3D12_GPU_DESCRIPTOR_HANDLE { UINT64 ptr; };
struct D3D12_DESCRIPTOR_HEAP_DESC
{
    D3D12_DESCRIPTOR_HEAP_TYPE Type;
    UINT NumDescriptors;
    D3D12_DESCRIPTOR_HEAP_FLAGS Flags;
};
struct D3D12_RESOURCE_BARRIER { D3D12_RESOURCE_BARRIER_TYPE Type; };
struct D3D12_CLEAR_VALUE {};

struct ID3D12Resource
{
    const char* name;
    UINT64 size;
    D3D12_RESOURCE_DESC GetDesc() const { D3D12_RESOURCE_DESC desc = {}; desc.Width = size; return desc; }
};
struct ID3D12DescriptorHeap
{
    D3D12_CPU_DESCRIPTOR_HANDLE GetCPUDescriptorHandleForHeapStart() const { return {0}; }
    D3D12_GPU_DESCRIPTOR_HANDLE GetGPUDescriptorHandleForHeapStart() const { return {0}; }
};
struct ID3D12GraphicsCommandList
{
    void SetDescriptorHeaps(UINT, ID3D12DescriptorHeap* const*) {}
    void ResourceBarrier(UINT, const D3D12_RESOURCE_BARRIER*) { std::printf("barrier\n"); }
};
struct ID3D12Device
{
    HRESULT CreateCommittedResource(
        const D3D12_HEAP_PROPERTIES*, D3D12_HEAP_FLAGS, const D3D12_RESOURCE_DESC* desc, D3D12_RESOURCE_STATES,
        const D3D12_CLEAR_VALUE*, Iid, ID3D12Resource** resource)
    {
        std::printf("memory of %llu bytes\n", static_cast<unsigned long long>(desc->Width));
        *resource = new ID3D12Resource{"memory", desc->Width};
        return S_OK;
    }
    HRESULT CreateDescriptorHeap(const D3D12_DESCRIPTOR_HEAP_DESC* desc, Iid, ID3D12DescriptorHeap** heap)
    {
        std::printf("heap of %u\n", desc->NumDescriptors);
        *heap = new ID3D12DescriptorHeap;
        return S_OK;
    }
    UINT GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE) { return 32; }
};

struct DML_BINDING_PROPERTIES { UINT RequiredDescriptorCount; UINT64 TemporaryResourceSize, PersistentResourceSize; };
struct DML_BUFFER_BINDING { ID3D12Resource* Buffer; UINT64 Offset, SizeInBytes; };
struct DML_BUFFER_ARRAY_BINDING { UINT BindingCount; const DML_BUFFER_BINDING* Bindings; };
struct DML_BINDING_DESC { DML_BINDING_TYPE Type; const void* Desc; };

struct IDMLDispatchable
{
    const char* kind;
    DML_BINDING_PROPERTIES properties;
    DML_BINDING_PROPERTIES GetBindingProperties() const { return properties; }
};
struct IDMLCompiledOperator : IDMLDispatchable {};
struct IDMLOperatorInitializer : IDMLDispatchable {};
struct IDMLOperator { const DML_OPERATOR_DESC* desc; };
struct DML_BINDING_TABLE_DESC
{
    IDMLDispatchable* Dispatchable;
    D3D12_CPU_DESCRIPTOR_HANDLE CPUDescriptorHandle;
    D3D12_GPU_DESCRIPTOR_HANDLE GPUDescriptorHandle;
    UINT SizeInDescriptors;
};
struct IDMLBindingTable
{
    static void show(const char* call, UINT count, const DML_BINDING_DESC* bindings)
    {
        std::printf("  %s", call);
        for (UINT i = 0; i < count; ++i)
        {
            const void* desc = bindings[i].Desc;
            if (bindings[i].Type == DML_BINDING_TYPE_BUFFER_ARRAY)
            {
                desc = static_cast<const DML_BUFFER_ARRAY_BINDING*>(desc)->Bindings;
            }
            const auto* buffer = static_cast<const DML_BUFFER_BINDING*>(desc);
            if (buffer == nullptr) { std::printf(" nothing"); continue; }
            std::printf(" %s[%llu]", buffer->Buffer->name, static_cast<unsigned long long>(buffer->SizeInBytes));
        }
        std::printf("\n");
    }
    void BindInputs(UINT count, const DML_BINDING_DESC* bindings) { show("inputs", count, bindings); }
    void BindOutputs(UINT count, const DML_BINDING_DESC* bindings) { show("outputs", count, bindings); }
    void BindTemporaryResource(const DML_BINDING_DESC* binding) { show("temporary", 1, binding); }
    void BindPersistentResource(const DML_BINDING_DESC* binding) { show("persistent", 1, binding); }
};
struct IDMLCommandRecorder
{
    void RecordDispatch(ID3D12GraphicsCommandList*, IDMLDispatchable* dispatchable, IDMLBindingTable*)
    {
        std::printf("dispatch %s\n", dispatchable->kind);
    }
};
struct IDMLDevice
{
    HRESULT CreateOperator(const DML_OPERATOR_DESC* desc, Iid, IDMLOperator** op)
    {
        if (desc->Type != DML_OPERATOR_TILE || refuses) { return static_cast<HRESULT>(0x80070057u); }
        *op = new IDMLOperator{desc};
        return S_OK;
    }
    HRESULT CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS, Iid, IDMLCompiledOperator** compiled)
    {
        const auto* tile = static_cast<const DML_TILE_OPERATOR_DESC*>(op->desc->Desc);
        const auto* input = static_cast<const DML_BUFFER_TENSOR_DESC*>(tile->InputTensor->Desc);
        const bool owns = (input->Flags & DML_TENSOR_FLAG_OWNED_BY_DML) != 0;
        *compiled = new IDMLCompiledOperator;
        (*compiled)->kind = "tile";
        (*compiled)->properties = {2, 0, owns ? input->TotalTensorSizeInBytes : 0};
        return S_OK;
    }
    HRESULT CreateOperatorInitializer(UINT, IDMLCompiledOperator* const*, Iid, IDMLOperatorInitializer** initializer)
    {
        *initializer = new IDMLOperatorInitializer;
        (*initializer)->kind = "initializer";
        (*initializer)->properties = {3, 16, 0};
        return S_OK;
    }
    HRESULT CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, Iid, IDMLBindingTable** table)
    {
        std::printf("table of %u from %u for the %s\n", desc->SizeInDescriptors,
                    static_cast<unsigned>(desc->GPUDescriptorHandle.ptr / 32), desc->Dispatchable->kind);
        *table = new IDMLBindingTable;
        return S_OK;
    }
    HRESULT CreateCommandRecorder(Iid, IDMLCommandRecorder** recorder) { *recorder = new IDMLCommandRecorder; return S_OK; }
    HRESULT GetDeviceRemovedReason() { return S_OK; }

    bool refuses = false;
};
