// dml_tile/null_device.h: a device without DirectML, on which libraries such as DirectMLX build their graphs anywhere.
//
//     ComPtr<IDMLDevice1> device, capturing;
//     HRESULT hr = dml_tile::CreateNullDevice(IID_PPV_ARGS(&device));
//     hr = dml_tile::CreateCapturingDevice(device.Get(), "operators.jsonl", IID_PPV_ARGS(&capturing));
//     dml::Graph graph(capturing.Get());
//
// It looks at no descriptor: each operator and graph is created and compiled with S_OK, and needs no memory. Nothing is
// executed, and there is no Direct3D 12: initializers, command recorders and binding tables are E_NOTIMPL.
//
// C++11, without dependencies, nothing to link, without exceptions and RTTI.
#ifndef DML_TILE_NULL_DEVICE_H
#define DML_TILE_NULL_DEVICE_H

#include <dml_tile/capturing_device.h>

namespace dml_tile
{
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
inline namespace since_2_1
#elif DML_TARGET_VERSION >= 0x2000
inline namespace since_2_0
#else
inline namespace since_1_0
#endif
{
namespace detail
{

const HRESULT not_implemented = static_cast<HRESULT>(0x80004001);
const HRESULT not_found = static_cast<HRESULT>(0x887A0002);

// The level that DirectML.h is included for.
#if defined(DML_TARGET_VERSION)
const UINT target_level = DML_TARGET_VERSION;
#else
const UINT target_level = 0x6400;
#endif

// An object that keeps the private data of the key that was set last.
template <class Base>
class NullObject : public Counted<Base>
{
public:
    NullObject() noexcept : key_(), size_(0), data_() {}

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID, void** object) override
    {
        *object = static_cast<Base*>(this);
        this->AddRef();
        return 0;
    }

    HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override
    {
        if (size_ == 0 || *size < size_ || std::memcmp(&key_, &guid, sizeof guid) != 0)
        {
            return not_found;
        }
        *size = size_;
        std::memcpy(data, data_, size_);
        return 0;
    }

    HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override
    {
        key_ = guid;
        size_ = data != nullptr && size <= sizeof data_ ? size : 0;
        std::memcpy(data_, data == nullptr ? data_ : data, size_);
        return 0;
    }

    HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID, IUnknown*) override { return 0; }
    HRESULT STDMETHODCALLTYPE SetName(PCWSTR) override { return 0; }

private:
    GUID key_;
    UINT size_;
    char data_[16];
};

// What a device made, which holds it.
template <class Base>
class NullChild : public NullObject<Base>
{
public:
    explicit NullChild(IUnknown* device) noexcept : device_(device) { device_->AddRef(); }
    ~NullChild() override { device_->Release(); }

    HRESULT STDMETHODCALLTYPE GetDevice(REFIID riid, void** device) override
    {
        return device_->QueryInterface(riid, device);
    }

private:
    IUnknown* const device_;
};

class NullCompiledOperator final : public NullChild<IDMLCompiledOperator>
{
public:
    using NullChild<IDMLCompiledOperator>::NullChild;

    DML_BINDING_PROPERTIES STDMETHODCALLTYPE GetBindingProperties() override { return DML_BINDING_PROPERTIES(); }
};

class NullDevice final : public NullObject<HighestDevice>
{
public:
    explicit NullDevice(UINT feature_level) noexcept : feature_level_(feature_level) {}

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** object) override
    {
        const bool is_known = interface_of(riid) != Interface::other;
        *object = nullptr;
        return is_known ? NullObject<HighestDevice>::QueryInterface(riid, object) : no_interface;
    }

    HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override
    {
        if (*size < sizeof(UINT) || std::memcmp(&null_device_key(), &guid, sizeof guid) != 0)
        {
            return NullObject<HighestDevice>::GetPrivateData(guid, size, data);
        }
        const UINT is_null = 1;
        *size = sizeof is_null;
        std::memcpy(data, &is_null, sizeof is_null);
        return 0;
    }

    // Each data type is supported, and the feature level is the one that was given.
    HRESULT STDMETHODCALLTYPE
    CheckFeatureSupport(DML_FEATURE feature, UINT, const void*, UINT size, void* support) override
    {
        const UINT answer = bits_of(feature) == 1 ? feature_level_ : 1;
        if (support == nullptr || size != sizeof answer)
        {
            return invalid_argument;
        }
        std::memcpy(support, &answer, sizeof answer);
        return 0;
    }

    HRESULT STDMETHODCALLTYPE CreateOperator(const DML_OPERATOR_DESC*, REFIID, void** object) override
    {
        return make<NullChild<IDMLOperator>>(object);
    }

    HRESULT STDMETHODCALLTYPE CompileOperator(IDMLOperator*, DML_EXECUTION_FLAGS, REFIID, void** object) override
    {
        return make<NullCompiledOperator>(object);
    }

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
    HRESULT STDMETHODCALLTYPE CompileGraph(const DML_GRAPH_DESC*, DML_EXECUTION_FLAGS, REFIID, void** object) override
    {
        return make<NullCompiledOperator>(object);
    }
#endif

    HRESULT STDMETHODCALLTYPE
    CreateOperatorInitializer(UINT, IDMLCompiledOperator* const*, REFIID, void** object) override
    {
        return none(object);
    }

    HRESULT STDMETHODCALLTYPE CreateCommandRecorder(REFIID, void** object) override { return none(object); }

    HRESULT STDMETHODCALLTYPE CreateBindingTable(const DML_BINDING_TABLE_DESC*, REFIID, void** object) override
    {
        return none(object);
    }

    HRESULT STDMETHODCALLTYPE Evict(UINT, IDMLPageable* const*) override { return 0; }
    HRESULT STDMETHODCALLTYPE MakeResident(UINT, IDMLPageable* const*) override { return 0; }
    HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override { return 0; }
    HRESULT STDMETHODCALLTYPE GetParentDevice(REFIID, void** object) override { return none(object); }

private:
    template <class Made>
    HRESULT make(void** object) noexcept
    {
        if (object == nullptr)
        {
            return 1;  // S_FALSE: the call was only to be tried
        }
        Made* const made = new (std::nothrow) Made(this);
        *object = made;
        return made == nullptr ? out_of_memory : 0;
    }

    static HRESULT none(void** object) noexcept
    {
        *object = nullptr;
        return not_implemented;
    }

    const UINT feature_level_;
};

}  // namespace detail

// Gives a device that answers for IUnknown, IDMLObject, IDMLDevice and, if DML_TARGET_VERSION has it, IDMLDevice1. Its
// CheckFeatureSupport gives `feature_level`, as DML_FEATURE_LEVEL has it, by default that of DML_TARGET_VERSION. A capture
// says that the device is this one, and has no HRESULTs of it.
//
// Returns E_POINTER without `device`, E_NOINTERFACE for another interface, E_OUTOFMEMORY.
static inline HRESULT CreateNullDevice(
    REFIID riid, void** device, UINT feature_level = detail::target_level) noexcept
{
    if (device == nullptr)
    {
        return detail::null_pointer;
    }
    *device = nullptr;
    detail::NullDevice* const made = new (std::nothrow) detail::NullDevice(feature_level);
    if (made == nullptr)
    {
        return detail::out_of_memory;
    }
    const HRESULT hr = made->QueryInterface(riid, device);
    made->Release();
    return hr;
}

}  // inline namespace
}  // namespace dml_tile

#endif  // DML_TILE_NULL_DEVICE_H
