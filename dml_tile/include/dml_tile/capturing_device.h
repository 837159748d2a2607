// dml_tile/capturing_device.h: a device that writes down every operator that is created on it, for `dml-tile check`.
//
//     ComPtr<IDMLDevice1> capturing;
//     HRESULT hr = dml_tile::CreateCapturingDevice(device.Get(), "tiles.jsonl", IID_PPV_ARGS(&capturing));
//     dml::Graph graph(capturing.Get());
//
// It passes each call on to the application's device, and after each CreateOperator appends the line that
// dml_tile/capture.h describes, also where it failed: so libraries that call it themselves, such as DirectMLX, need no
// line of their own. Then, on any machine: `dml-tile check tiles.jsonl --target windows-10-22h2`.
//
// C++11, without dependencies, nothing to link, without exceptions and RTTI.
#ifndef DML_TILE_CAPTURING_DEVICE_H
#define DML_TILE_CAPTURING_DEVICE_H

#include <dml_tile/capture.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace dml_tile
{
inline namespace DML_TILE_SINCE
{
namespace detail
{

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
typedef IDMLDevice1 HighestDevice;
#else
typedef IDMLDevice HighestDevice;
#endif

// Interfaces by their identifiers, which are written here since elsewhere than on Windows nobody may define them.
enum class Interface
{
    unknown,
    object,
    device,
    device1,
    other
};

inline const GUID& device1_id() noexcept
{
    static const GUID id = {0xA0884F9A, 0xD2BE, 0x4355, {0xAA, 0x5D, 0x59, 0x01, 0x28, 0x1A, 0xD1, 0xD2}};
    return id;
}

inline Interface interface_of(REFIID riid) noexcept
{
    static const GUID ids[] = {
        {0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}},
        {0xC8263AAC, 0x9E0C, 0x4A2D, {0x9B, 0x8E, 0x00, 0x75, 0x21, 0xA3, 0x31, 0x7C}},
        {0x6DBD6437, 0x96FD, 0x423F, {0xA9, 0x8C, 0xAE, 0x5E, 0x7C, 0x2A, 0x57, 0x3F}},
        device1_id()};
    int found = 0;
    while (found < 4 && std::memcmp(&ids[found], &riid, sizeof riid) != 0)
    {
        ++found;
    }
    return static_cast<Interface>(found);
}

// HRESULTs, which elsewhere than on Windows some headers leave out.
const HRESULT no_interface = static_cast<HRESULT>(0x80004002);
const HRESULT null_pointer = static_cast<HRESULT>(0x80004003);
const HRESULT out_of_memory = static_cast<HRESULT>(0x8007000E);
const HRESULT invalid_argument = static_cast<HRESULT>(0x80070057);

struct PathSize
{
    std::size_t bytes;
};

// A device before a device. Its path lies behind it, in the same memory.
template <class Character>
class CapturingDevice final : public HighestDevice
{
public:
    static CapturingDevice* create(IDMLDevice* device, const Character* path) noexcept
    {
        std::size_t length = 0;
        while (path[length] != Character())
        {
            ++length;
        }
        const PathSize size = {(length + 1) * sizeof(Character)};
        CapturingDevice* const made = new (size) CapturingDevice(device);
        if (made != nullptr)
        {
            std::memcpy(static_cast<void*>(made + 1), path, size.bytes);
        }
        return made;
    }

    CapturingDevice(const CapturingDevice&) = delete;
    CapturingDevice& operator=(const CapturingDevice&) = delete;

    // IUnknown

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** object) override
    {
        if (object == nullptr)
        {
            return null_pointer;
        }
        *object = nullptr;
        switch (interface_of(riid))
        {
        case Interface::unknown:
            *object = static_cast<IUnknown*>(this);
            break;
        case Interface::object:
            *object = static_cast<IDMLObject*>(this);
            break;
        case Interface::device:
            *object = static_cast<IDMLDevice*>(this);
            break;
        case Interface::device1:
            if (device1_ == nullptr)
            {
                return no_interface;
            }
            *object = static_cast<HighestDevice*>(this);
            break;
        case Interface::other:
            return query_device(riid, object);
        }
        AddRef();
        return 0;
    }

    ULONG STDMETHODCALLTYPE AddRef() override { return references_.fetch_add(1, std::memory_order_relaxed) + 1; }

    ULONG STDMETHODCALLTYPE Release() override
    {
        const ULONG left = references_.fetch_sub(1, std::memory_order_acq_rel) - 1;
        if (left == 0)
        {
            delete this;
        }
        return left;
    }

    // IDMLObject

    HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override
    {
        return device_->GetPrivateData(guid, size, data);
    }

    HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override
    {
        return device_->SetPrivateData(guid, size, data);
    }

    HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, IUnknown* data) override
    {
        return device_->SetPrivateDataInterface(guid, data);
    }

    HRESULT STDMETHODCALLTYPE SetName(PCWSTR name) override { return device_->SetName(name); }

    // IDMLDevice

    HRESULT STDMETHODCALLTYPE CheckFeatureSupport(
        DML_FEATURE feature, UINT query_size, const void* query, UINT support_size, void* support) override
    {
        return device_->CheckFeatureSupport(feature, query_size, query, support_size, support);
    }

    HRESULT STDMETHODCALLTYPE CreateOperator(const DML_OPERATOR_DESC* desc, REFIID riid, void** object) override
    {
        const HRESULT hr = device_->CreateOperator(desc, riid, object);
        Line line;
        describe(line, desc, &hr, level_);
        append(file(), line);
        return hr;
    }

    HRESULT STDMETHODCALLTYPE
    CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS flags, REFIID riid, void** object) override
    {
        return device_->CompileOperator(op, flags, riid, object);
    }

    HRESULT STDMETHODCALLTYPE CreateOperatorInitializer(
        UINT count, IDMLCompiledOperator* const* operators, REFIID riid, void** object) override
    {
        return device_->CreateOperatorInitializer(count, operators, riid, object);
    }

    HRESULT STDMETHODCALLTYPE CreateCommandRecorder(REFIID riid, void** object) override
    {
        return device_->CreateCommandRecorder(riid, object);
    }

    HRESULT STDMETHODCALLTYPE
    CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, REFIID riid, void** object) override
    {
        return device_->CreateBindingTable(desc, riid, object);
    }

    HRESULT STDMETHODCALLTYPE Evict(UINT count, IDMLPageable* const* objects) override
    {
        return device_->Evict(count, objects);
    }

    HRESULT STDMETHODCALLTYPE MakeResident(UINT count, IDMLPageable* const* objects) override
    {
        return device_->MakeResident(count, objects);
    }

    HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override { return device_->GetDeviceRemovedReason(); }

    HRESULT STDMETHODCALLTYPE GetParentDevice(REFIID riid, void** object) override
    {
        return device_->GetParentDevice(riid, object);
    }

    // IDMLDevice1

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
    HRESULT STDMETHODCALLTYPE
    CompileGraph(const DML_GRAPH_DESC* desc, DML_EXECUTION_FLAGS flags, REFIID riid, void** object) override
    {
        return device1_->CompileGraph(desc, flags, riid, object);
    }
#endif

private:
    explicit CapturingDevice(IDMLDevice* device) noexcept
        : references_(1), device_(device), device1_(nullptr), level_(level_of(device))
    {
        device_->AddRef();
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
        // Asked for once: its answer may not change. It may be another pointer than the device's.
        void* found = nullptr;
        if (device_->QueryInterface(device1_id(), &found) >= 0)
        {
            device1_ = static_cast<HighestDevice*>(found);
        }
#endif
    }

    ~CapturingDevice()
    {
        if (device1_ != nullptr)
        {
            device1_->Release();
        }
        device_->Release();
    }

    static void* operator new(std::size_t size, PathSize path) noexcept
    {
        return ::operator new(size + path.bytes, std::nothrow);
    }

    static void operator delete(void* memory, PathSize) noexcept { ::operator delete(memory); }

    static void operator delete(void* memory) noexcept { ::operator delete(memory); }

    HRESULT query_device(REFIID riid, void** object) const
    {
        const HRESULT hr = device_->QueryInterface(riid, object);
        if (hr < 0)
        {
            *object = nullptr;
        }
        return hr;
    }

    const Character* file() const noexcept
    {
        return static_cast<const Character*>(static_cast<const void*>(this + 1));
    }

    std::atomic<ULONG> references_;
    IDMLDevice* const device_;
    HighestDevice* device1_;
    const std::uint32_t level_;
};

template <class Character>
HRESULT create_capturing_device(IDMLDevice* device, const Character* path, REFIID riid, void** capturing) noexcept
{
    if (capturing == nullptr)
    {
        return null_pointer;
    }
    *capturing = nullptr;
    if (device == nullptr || path == nullptr)
    {
        return invalid_argument;
    }
    CapturingDevice<Character>* const made = CapturingDevice<Character>::create(device, path);
    if (made == nullptr)
    {
        return out_of_memory;
    }
    const HRESULT hr = made->QueryInterface(riid, capturing);
    made->Release();
    return hr;
}

}  // namespace detail

// Gives a device that holds `device`, passes each call on to it, and after each CreateOperator appends a line to the file
// at `path`; one that cannot be written changes nothing. A wide path is elsewhere than on Windows taken as UTF-8.
//
// It is thread-safe, and answers for IUnknown, IDMLObject, IDMLDevice, and IDMLDevice1 where `device` has that; for other
// interfaces `device` answers. What it creates is not wrapped: GetDevice of an operator gives `device`.
//
// Returns E_POINTER without `capturing`, E_INVALIDARG without a device or path, E_NOINTERFACE for an interface that
// neither has, E_OUTOFMEMORY; then *capturing is null, and nothing is held.
inline HRESULT CreateCapturingDevice(
    IDMLDevice* device, const char* path, REFIID riid, void** capturing) noexcept
{
    return detail::create_capturing_device(device, path, riid, capturing);
}

inline HRESULT CreateCapturingDevice(
    IDMLDevice* device, const wchar_t* path, REFIID riid, void** capturing) noexcept
{
    return detail::create_capturing_device(device, path, riid, capturing);
}

}  // namespace DML_TILE_SINCE
}  // namespace dml_tile

#endif  // DML_TILE_CAPTURING_DEVICE_H
