// Runs a chain of tiles with DirectML's own calls. `dml-tile lower --format cpp` writes it before the chains it is for.
#ifndef DML_TILE_TILE_CHAIN_H
#define DML_TILE_TILE_CHAIN_H

#include <DirectML.h>
#include <wrl/client.h>

#include <cstddef>
#include <vector>

// A step of a chain of tiles. Buffer 0 is the input, 1 the output; from 2 on they are scratch memory.
struct TileStep
{
    const DML_OPERATOR_DESC* desc;
    UINT reads;
    UINT writes;
    bool owns_input;  // DML_TENSOR_FLAG_OWNED_BY_DML: its input is bound when it is initialised, and not again
};

// The operators of a chain, with their memory: create() once, initialize() once, record() as often as is wanted.
// What is recorded has to be executed in the order in which it was recorded, while the chain and the buffers live.
class TileChain
{
public:
    HRESULT create(
        ID3D12Device* d3d12, IDMLDevice* dml, const TileStep* steps, UINT step_count, const UINT64* scratch_sizes,
        UINT scratch_count)
    {
        dml_ = dml;
        steps_.assign(steps, steps + step_count);
        buffers_.resize(2);
        for (UINT i = 0; i < scratch_count; ++i)
        {
            buffers_.emplace_back();
            HRESULT hr = allocate(d3d12, scratch_sizes[i], buffers_.back());
            if (FAILED(hr)) { return hr; }
        }
        std::vector<IDMLCompiledOperator*> operators;
        for (const TileStep& step : steps_)
        {
            Microsoft::WRL::ComPtr<IDMLOperator> op;
            HRESULT hr = dml->CreateOperator(step.desc, IID_PPV_ARGS(op.GetAddressOf()));
            if (FAILED(hr)) { return hr; }
            Work work;
            hr = dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(work.compiled.GetAddressOf()));
            if (FAILED(hr)) { return hr; }
            work.properties = work.compiled->GetBindingProperties();
            hr = allocate(d3d12, work.properties.TemporaryResourceSize, work.temporary);
            if (FAILED(hr)) { return hr; }
            hr = allocate(d3d12, work.properties.PersistentResourceSize, work.persistent);
            if (FAILED(hr)) { return hr; }
            operators.push_back(work.compiled.Get());
            works_.push_back(work);
        }
        HRESULT hr = dml->CreateOperatorInitializer(step_count, operators.data(), IID_PPV_ARGS(initializer_.GetAddressOf()));
        if (FAILED(hr)) { return hr; }
        initial_ = initializer_->GetBindingProperties();
        hr = allocate(d3d12, initial_.TemporaryResourceSize, initial_temporary_);
        if (FAILED(hr)) { return hr; }
        hr = dml->CreateCommandRecorder(IID_PPV_ARGS(recorder_.GetAddressOf()));
        if (FAILED(hr)) { return hr; }
        UINT descriptors = initial_.RequiredDescriptorCount;
        for (Work& work : works_)
        {
            work.first_descriptor = descriptors;
            descriptors += work.properties.RequiredDescriptorCount;
        }
        D3D12_DESCRIPTOR_HEAP_DESC heap = {};
        heap.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
        heap.NumDescriptors = descriptors ? descriptors : 1;
        heap.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
        increment_ = d3d12->GetDescriptorHandleIncrementSize(heap.Type);
        return d3d12->CreateDescriptorHeap(&heap, IID_PPV_ARGS(heap_.GetAddressOf()));
    }

    // Records the initialisation; `input` is read where a step owns it.
    HRESULT initialize(ID3D12GraphicsCommandList* list, ID3D12Resource* input)
    {
        buffers_[0] = input;
        Microsoft::WRL::ComPtr<IDMLBindingTable> table;
        HRESULT hr = make_table(initializer_.Get(), initial_, 0, list, table);
        if (FAILED(hr)) { return hr; }
        const std::size_t count = works_.size();
        std::vector<DML_BUFFER_BINDING> inputs(count), persistent(count);
        std::vector<DML_BUFFER_ARRAY_BINDING> arrays(count);
        std::vector<DML_BINDING_DESC> bound_inputs(count), bound_outputs(count);
        for (std::size_t i = 0; i < count; ++i)
        {
            if (steps_[i].owns_input)
            {
                inputs[i] = whole(buffers_[steps_[i].reads].Get());
                arrays[i].BindingCount = 1;
                arrays[i].Bindings = &inputs[i];
                bound_inputs[i].Type = DML_BINDING_TYPE_BUFFER_ARRAY;
                bound_inputs[i].Desc = &arrays[i];
            }
            bound_outputs[i] = described(works_[i].persistent.Get(), persistent[i]);
        }
        table->BindInputs(static_cast<UINT>(count), bound_inputs.data());
        table->BindOutputs(static_cast<UINT>(count), bound_outputs.data());
        bind_temporary(table.Get(), initial_temporary_.Get());
        dispatch(list, initializer_.Get(), table.Get());
        return dml_->GetDeviceRemovedReason();
    }

    // Records the steps, from `input` to `output`, which are in the state D3D12_RESOURCE_STATE_UNORDERED_ACCESS.
    HRESULT record(ID3D12GraphicsCommandList* list, ID3D12Resource* input, ID3D12Resource* output)
    {
        buffers_[0] = input;
        buffers_[1] = output;
        for (std::size_t i = 0; i < works_.size(); ++i)
        {
            const Work& work = works_[i];
            Microsoft::WRL::ComPtr<IDMLBindingTable> table;
            HRESULT hr = make_table(work.compiled.Get(), work.properties, work.first_descriptor, list, table);
            if (FAILED(hr)) { return hr; }
            DML_BUFFER_BINDING read = {}, written = {}, persistent = {};
            DML_BINDING_DESC bound = {};
            if (!steps_[i].owns_input) { bound = described(buffers_[steps_[i].reads].Get(), read); }
            table->BindInputs(1, &bound);
            bound = described(buffers_[steps_[i].writes].Get(), written);
            table->BindOutputs(1, &bound);
            bind_temporary(table.Get(), work.temporary.Get());
            if (work.persistent)
            {
                bound = described(work.persistent.Get(), persistent);
                table->BindPersistentResource(&bound);
            }
            dispatch(list, work.compiled.Get(), table.Get());
        }
        return dml_->GetDeviceRemovedReason();
    }

private:
    struct Work
    {
        Microsoft::WRL::ComPtr<IDMLCompiledOperator> compiled;
        Microsoft::WRL::ComPtr<ID3D12Resource> temporary;
        Microsoft::WRL::ComPtr<ID3D12Resource> persistent;
        DML_BINDING_PROPERTIES properties = {};
        UINT first_descriptor = 0;
    };

    // Scratch memory; nothing where no bytes are wanted.
    static HRESULT allocate(ID3D12Device* d3d12, UINT64 size, Microsoft::WRL::ComPtr<ID3D12Resource>& resource)
    {
        if (size == 0) { return S_OK; }
        D3D12_HEAP_PROPERTIES heap = {};
        heap.Type = D3D12_HEAP_TYPE_DEFAULT;
        D3D12_RESOURCE_DESC buffer = {};
        buffer.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
        buffer.Width = size;
        buffer.Height = 1;
        buffer.DepthOrArraySize = 1;
        buffer.MipLevels = 1;
        buffer.SampleDesc.Count = 1;
        buffer.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
        buffer.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
        return d3d12->CreateCommittedResource(
            &heap, D3D12_HEAP_FLAG_NONE, &buffer, D3D12_RESOURCE_STATE_COMMON, nullptr,
            IID_PPV_ARGS(resource.GetAddressOf()));
    }

    static DML_BUFFER_BINDING whole(ID3D12Resource* resource)
    {
        DML_BUFFER_BINDING binding = {};
        binding.Buffer = resource;
        binding.SizeInBytes = resource->GetDesc().Width;
        return binding;
    }

    static DML_BINDING_DESC described(ID3D12Resource* resource, DML_BUFFER_BINDING& binding)
    {
        DML_BINDING_DESC desc = {};
        if (resource != nullptr)
        {
            binding = whole(resource);
            desc.Type = DML_BINDING_TYPE_BUFFER;
            desc.Desc = &binding;
        }
        return desc;
    }

    HRESULT make_table(
        IDMLDispatchable* dispatchable, const DML_BINDING_PROPERTIES& properties, UINT first,
        ID3D12GraphicsCommandList* list, Microsoft::WRL::ComPtr<IDMLBindingTable>& table)
    {
        ID3D12DescriptorHeap* const heaps[] = {heap_.Get()};
        list->SetDescriptorHeaps(1, heaps);
        DML_BINDING_TABLE_DESC desc = {};
        desc.Dispatchable = dispatchable;
        desc.CPUDescriptorHandle = heap_->GetCPUDescriptorHandleForHeapStart();
        desc.CPUDescriptorHandle.ptr += static_cast<SIZE_T>(first) * increment_;
        desc.GPUDescriptorHandle = heap_->GetGPUDescriptorHandleForHeapStart();
        desc.GPUDescriptorHandle.ptr += static_cast<UINT64>(first) * increment_;
        desc.SizeInDescriptors = properties.RequiredDescriptorCount;
        return dml_->CreateBindingTable(&desc, IID_PPV_ARGS(table.GetAddressOf()));
    }

    static void bind_temporary(IDMLBindingTable* table, ID3D12Resource* temporary)
    {
        DML_BUFFER_BINDING binding = {};
        const DML_BINDING_DESC bound = described(temporary, binding);
        if (temporary != nullptr) { table->BindTemporaryResource(&bound); }
    }

    // Records a dispatch, and a barrier: what it writes is there before the next one reads.
    void dispatch(ID3D12GraphicsCommandList* list, IDMLDispatchable* dispatchable, IDMLBindingTable* table)
    {
        recorder_->RecordDispatch(list, dispatchable, table);
        D3D12_RESOURCE_BARRIER barrier = {};
        barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
        list->ResourceBarrier(1, &barrier);
    }

    Microsoft::WRL::ComPtr<IDMLDevice> dml_;
    Microsoft::WRL::ComPtr<IDMLOperatorInitializer> initializer_;
    Microsoft::WRL::ComPtr<IDMLCommandRecorder> recorder_;
    Microsoft::WRL::ComPtr<ID3D12DescriptorHeap> heap_;
    Microsoft::WRL::ComPtr<ID3D12Resource> initial_temporary_;
    DML_BINDING_PROPERTIES initial_ = {};
    UINT increment_ = 0;
    std::vector<TileStep> steps_;
    std::vector<Work> works_;
    std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> buffers_;
};

#endif  // DML_TILE_TILE_CHAIN_H
