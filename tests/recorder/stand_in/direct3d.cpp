// Stands in for libd3d12.so: a device that executes nothing. It answers what DirectML asks of an adapter, and hands out
// inert resources and command lists. The functions at the end are for Python.
#define INITGUID
#include <wsl/winadapter.h>
#include <directx/d3d12.h>
#include <dxguids/dxguids.h>

#include <cstring>

#include "neutral_direct3d.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <class T>
HRESULT make(REFIID id, void** result) {
    return result ? (new T)->QueryInterface(id, result) : S_FALSE;
}

struct RootSignature : NeutralRootSignature {};
struct PipelineState : NeutralPipelineState {};

struct Device : NeutralDevice {
    bool double_precision = true;
    bool typed_uav_loads = true;
    bool native_16_bit_ops = true;
    HRESULT removed_reason = S_OK;

    UINT STDMETHODCALLTYPE GetNodeCount() override { return 1; }
    UINT STDMETHODCALLTYPE GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE) override { return 32; }
    HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override { return removed_reason; }

    LUID STDMETHODCALLTYPE GetAdapterLuid() override {
        LUID luid{};
        luid.LowPart = 1;
        return luid;
    }

    HRESULT STDMETHODCALLTYPE EnumerateMetaCommands(UINT* count, D3D12_META_COMMAND_DESC*) override {
        *count = 0;
        return S_OK;
    }

    HRESULT STDMETHODCALLTYPE CreateRootSignature(UINT, const void*, SIZE_T, REFIID id, void** result) override {
        return make<RootSignature>(id, result);
    }

    HRESULT STDMETHODCALLTYPE CreateComputePipelineState(
        const D3D12_COMPUTE_PIPELINE_STATE_DESC*, REFIID id, void** result) override {
        return make<PipelineState>(id, result);
    }

    HRESULT STDMETHODCALLTYPE CheckFeatureSupport(D3D12_FEATURE feature, void* data, UINT size) override {
        switch (feature) {
            case D3D12_FEATURE_D3D12_OPTIONS: {
                auto* options = cleared<D3D12_FEATURE_DATA_D3D12_OPTIONS>(data, size);
                if (!options) return E_INVALIDARG;
                options->DoublePrecisionFloatShaderOps = double_precision;
                options->TypedUAVLoadAdditionalFormats = typed_uav_loads;
                options->MinPrecisionSupport = D3D12_SHADER_MIN_PRECISION_SUPPORT_16_BIT;
                options->TiledResourcesTier = D3D12_TILED_RESOURCES_TIER_3;
                options->ResourceBindingTier = D3D12_RESOURCE_BINDING_TIER_3;
                options->MaxGPUVirtualAddressBitsPerResource = 44;
                options->ResourceHeapTier = D3D12_RESOURCE_HEAP_TIER_2;
                return S_OK;
            }
            case D3D12_FEATURE_FEATURE_LEVELS: {
                if (size != sizeof(D3D12_FEATURE_DATA_FEATURE_LEVELS)) return E_INVALIDARG;
                static_cast<D3D12_FEATURE_DATA_FEATURE_LEVELS*>(data)->MaxSupportedFeatureLevel = D3D_FEATURE_LEVEL_12_1;
                return S_OK;
            }
            case D3D12_FEATURE_SHADER_MODEL: {
                if (size != sizeof(D3D12_FEATURE_DATA_SHADER_MODEL)) return E_INVALIDARG;
                auto& model = static_cast<D3D12_FEATURE_DATA_SHADER_MODEL*>(data)->HighestShaderModel;
                if (model > D3D_SHADER_MODEL_6_6) model = D3D_SHADER_MODEL_6_6;
                return S_OK;
            }
            case D3D12_FEATURE_D3D12_OPTIONS1: {
                auto* options = cleared<D3D12_FEATURE_DATA_D3D12_OPTIONS1>(data, size);
                if (!options) return E_INVALIDARG;
                options->WaveOps = TRUE;
                options->WaveLaneCountMin = options->WaveLaneCountMax = 32;
                options->TotalLaneCount = 4096;
                options->Int64ShaderOps = TRUE;
                return S_OK;
            }
            case D3D12_FEATURE_D3D12_OPTIONS4: {
                auto* options = cleared<D3D12_FEATURE_DATA_D3D12_OPTIONS4>(data, size);
                if (!options) return E_INVALIDARG;
                options->Native16BitShaderOpsSupported = native_16_bit_ops;
                return S_OK;
            }
            default:
                return E_INVALIDARG;
        }
    }

private:
    template <class T>
    static T* cleared(void* data, UINT size) {
        return size == sizeof(T) ? static_cast<T*>(memset(data, 0, size)) : nullptr;
    }
};

HRESULT device_of(Device* device, REFIID id, void** result) {
    if (device) return device->QueryInterface(id, result);
    *result = nullptr;
    return E_NOTIMPL;
}

struct Resource : NeutralResource {
    Device* device = nullptr;
    D3D12_RESOURCE_DESC desc{};
    D3D12_HEAP_PROPERTIES heap{};
    UINT64 address = 0;

    HRESULT STDMETHODCALLTYPE GetDevice(REFIID id, void** result) override { return device_of(device, id, result); }
    D3D12_RESOURCE_DESC STDMETHODCALLTYPE GetDesc() override { return desc; }
    D3D12_GPU_VIRTUAL_ADDRESS STDMETHODCALLTYPE GetGPUVirtualAddress() override { return address; }

    HRESULT STDMETHODCALLTYPE GetHeapProperties(D3D12_HEAP_PROPERTIES* properties, D3D12_HEAP_FLAGS* flags) override {
        if (properties) *properties = heap;
        if (flags) *flags = D3D12_HEAP_FLAG_NONE;
        return S_OK;
    }
};

struct CommandList : NeutralCommandList {
    Device* device = nullptr;
    D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT;
    bool is_graphics = true;

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID id, void** result) override {
        if (is_graphics || id == IID_IUnknown || id == IID_ID3D12CommandList)
            return NeutralCommandList::QueryInterface(id, result);
        *result = nullptr;
        return E_NOINTERFACE;
    }
    HRESULT STDMETHODCALLTYPE GetDevice(REFIID id, void** result) override { return device_of(device, id, result); }
    D3D12_COMMAND_LIST_TYPE STDMETHODCALLTYPE GetType() override { return type; }
};

struct Blob : NeutralBlob {
    char bytes[16] = "root signature";
    void* STDMETHODCALLTYPE GetBufferPointer() override { return bytes; }
    SIZE_T STDMETHODCALLTYPE GetBufferSize() override { return sizeof bytes; }
};

Device* as_device(void* device) { return static_cast<Device*>(static_cast<ID3D12Device*>(device)); }

}  // namespace

// The only function of Direct3D 12 that DirectML imports; nothing reads the signature.
EXPORT HRESULT D3D12SerializeVersionedRootSignature(
    const D3D12_VERSIONED_ROOT_SIGNATURE_DESC*, ID3D10Blob** blob, ID3D10Blob** error) {
    if (error) *error = nullptr;
    *blob = new Blob;
    return S_OK;
}

EXPORT void* stand_in_device(int double_precision, int typed_uav_loads, int native_16_bit_ops) {
    auto* device = new Device;
    device->double_precision = double_precision;
    device->typed_uav_loads = typed_uav_loads;
    device->native_16_bit_ops = native_16_bit_ops;
    return static_cast<ID3D12Device*>(device);
}

EXPORT void stand_in_remove_device(void* device, HRESULT reason) { as_device(device)->removed_reason = reason; }

EXPORT void* stand_in_resource(
    void* device, UINT64 width, UINT heap, UINT cpu_page_property, UINT memory_pool, UINT flags, UINT dimension) {
    static UINT64 next_address = 1ull << 32;
    auto* resource = new Resource;
    resource->device = device ? as_device(device) : nullptr;
    resource->heap.Type = static_cast<D3D12_HEAP_TYPE>(heap);
    resource->heap.CPUPageProperty = static_cast<D3D12_CPU_PAGE_PROPERTY>(cpu_page_property);
    resource->heap.MemoryPoolPreference = static_cast<D3D12_MEMORY_POOL>(memory_pool);
    resource->heap.CreationNodeMask = resource->heap.VisibleNodeMask = 1;
    const bool is_buffer = dimension == D3D12_RESOURCE_DIMENSION_BUFFER;
    auto& desc = resource->desc;
    desc.Dimension = static_cast<D3D12_RESOURCE_DIMENSION>(dimension);
    desc.Alignment = 65536;
    desc.Width = width;
    desc.Height = desc.DepthOrArraySize = desc.MipLevels = 1;
    desc.Format = is_buffer ? DXGI_FORMAT_UNKNOWN : DXGI_FORMAT_R32_UINT;
    desc.SampleDesc.Count = 1;
    desc.Layout = is_buffer ? D3D12_TEXTURE_LAYOUT_ROW_MAJOR : D3D12_TEXTURE_LAYOUT_UNKNOWN;
    desc.Flags = static_cast<D3D12_RESOURCE_FLAGS>(flags);
    resource->address = next_address;
    next_address += (width | 0xffff) + 1;
    return static_cast<ID3D12Resource*>(resource);
}

EXPORT void* stand_in_command_list(void* device, UINT type, int is_graphics) {
    auto* list = new CommandList;
    list->device = as_device(device);
    list->type = static_cast<D3D12_COMMAND_LIST_TYPE>(type);
    list->is_graphics = is_graphics;
    return static_cast<ID3D12CommandList*>(list);
}
