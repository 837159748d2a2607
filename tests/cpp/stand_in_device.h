// A device for tests, whose IDMLDevice and IDMLDevice1 are two sub-objects. It counts its references, writes down its
// calls, and returns what it is asked to return.
#ifndef DML_TILE_TESTS_STAND_IN_DEVICE_H
#define DML_TILE_TESTS_STAND_IN_DEVICE_H

#include <DirectML.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#define REQUIRE(condition)                                                              \
    do                                                                                  \
    {                                                                                   \
        if (!(condition))                                                               \
        {                                                                               \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                               \
        }                                                                               \
    } while (false)

namespace ids
{

const GUID unknown = {0, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
const GUID object = {0xC8263AAC, 0x9E0C, 0x4A2D, {0x9B, 0x8E, 0x00, 0x75, 0x21, 0xA3, 0x31, 0x7C}};
const GUID device = {0x6DBD6437, 0x96FD, 0x423F, {0xA9, 0x8C, 0xAE, 0x5E, 0x7C, 0x2A, 0x57, 0x3F}};
const GUID device1 = {0xA0884F9A, 0xD2BE, 0x4355, {0xAA, 0x5D, 0x59, 0x01, 0x28, 0x1A, 0xD1, 0xD2}};
const GUID debug_device = {0x7D6F3AC9, 0x394A, 0x4AC3, {0x92, 0xA7, 0x39, 0x0C, 0xC5, 0x7A, 0x82, 0x17}};
const GUID nobodys = {1, 2, 3, {4, 5, 6, 7, 8, 9, 10, 11}};

inline bool equal(const GUID& one, const GUID& other) { return std::memcmp(&one, &other, sizeof one) == 0; }

}  // namespace ids

const HRESULT not_implemented = static_cast<HRESULT>(0x80004001);
const HRESULT no_interface = static_cast<HRESULT>(0x80004002);
const HRESULT null_pointer = static_cast<HRESULT>(0x80004003);
const HRESULT removed = static_cast<HRESULT>(0x887A0005);
const HRESULT out_of_memory = static_cast<HRESULT>(0x8007000E);
const HRESULT invalid_argument = static_cast<HRESULT>(0x80070057);

// A call's method, and its arguments as numbers and addresses.
struct Call
{
    std::string method;
    std::vector<std::uintptr_t> arguments;

    bool operator==(const Call& other) const { return method == other.method && arguments == other.arguments; }
};

template <class T>
std::uintptr_t number(T* address)
{
    return reinterpret_cast<std::uintptr_t>(address);
}

inline std::uintptr_t number(std::uint32_t value) { return value; }

// An operator, of which only private data are asked. It keeps those of the last two keys.
class StandInOperator final : public IDMLOperator
{
public:
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** object) override
    {
        REQUIRE(ids::equal(riid, ids::object));
        *object = static_cast<IDMLObject*>(this);
        return 0;
    }

    ULONG STDMETHODCALLTYPE AddRef() override { return 1; }
    ULONG STDMETHODCALLTYPE Release() override { return 1; }

    HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override
    {
        for (const Data& each : kept_)
        {
            if (ids::equal(each.key, guid) && *size == sizeof each.value)
            {
                std::memcpy(data, &each.value, sizeof each.value);
                return 0;
            }
        }
        return static_cast<HRESULT>(0x887A0002);
    }

    HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override
    {
        REQUIRE(size == sizeof kept_[0].value);
        kept_[1] = kept_[0];
        kept_[0].key = guid;
        std::memcpy(&kept_[0].value, data, size);
        return 0;
    }

    HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID, IUnknown*) override { return 0; }
    HRESULT STDMETHODCALLTYPE SetName(PCWSTR) override { return 0; }
    HRESULT STDMETHODCALLTYPE GetDevice(REFIID, void**) override { return 0; }

private:
    struct Data
    {
        GUID key;
        UINT value;
    };

    Data kept_[2] = {};
};

struct FirstPart : IDMLDevice
{
};

struct SecondPart : IDMLDevice1
{
};

class StandInDevice final : public FirstPart, public SecondPart
{
public:
    explicit StandInDevice(bool has_device1 = true)
        : result(0), makes_operators(false), keeps_calls(true), has_device1_(has_device1), count_(1)
    {
        created.reserve(16);
    }

    ~StandInDevice() { REQUIRE(count_ == 0); }

    IDMLDevice* get() { return static_cast<FirstPart*>(this); }
    ULONG count() const { return count_; }

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** object) override
    {
        if (ids::equal(riid, ids::device1) && has_device1_) { *object = static_cast<SecondPart*>(this); }
        else if (ids::equal(riid, ids::device) || ids::equal(riid, ids::object) || ids::equal(riid, ids::unknown) ||
                 ids::equal(riid, ids::debug_device)) { *object = static_cast<FirstPart*>(this); }
        else
        {
            *object = this;  // which a device should not do when it fails
            return no_interface;
        }
        AddRef();
        return 0;
    }

    ULONG STDMETHODCALLTYPE AddRef() override { return ++count_; }
    ULONG STDMETHODCALLTYPE Release() override { return --count_; }

    HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override
    {
        return called("GetPrivateData", {number(&guid), number(size), number(data)});
    }

    HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override
    {
        return called("SetPrivateData", {number(&guid), number(size), number(data)});
    }

    HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, IUnknown* data) override
    {
        return called("SetPrivateDataInterface", {number(&guid), number(data)});
    }

    HRESULT STDMETHODCALLTYPE SetName(PCWSTR name) override { return called("SetName", {number(name)}); }

    HRESULT STDMETHODCALLTYPE
    CheckFeatureSupport(DML_FEATURE feature, UINT query_size, const void* query, UINT size, void* data) override
    {
        if (feature == DML_FEATURE_FEATURE_LEVELS && data != nullptr)
        {
            const std::uint32_t level = 0x6200;
            REQUIRE(size == sizeof level);
            std::memcpy(data, &level, sizeof level);
        }
        return called("CheckFeatureSupport", {number(query_size), number(query), number(size), number(data)});
    }

    HRESULT STDMETHODCALLTYPE CreateOperator(const DML_OPERATOR_DESC* desc, REFIID riid, void** object) override
    {
        if (object != nullptr && makes_operators)
        {
            REQUIRE(created.size() < created.capacity());
            created.emplace_back();
            *object = &created.back();
        }
        return called("CreateOperator", {number(desc), number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE
    CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS flags, REFIID riid, void** object) override
    {
        return called("CompileOperator", {number(op), number(std::uint32_t(flags)), number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE CreateOperatorInitializer(
        UINT count, IDMLCompiledOperator* const* operators, REFIID riid, void** object) override
    {
        return called("CreateOperatorInitializer", {number(count), number(operators), number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE CreateCommandRecorder(REFIID riid, void** object) override
    {
        return called("CreateCommandRecorder", {number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE
    CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, REFIID riid, void** object) override
    {
        return called("CreateBindingTable", {number(desc), number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE Evict(UINT count, IDMLPageable* const* objects) override
    {
        return called("Evict", {number(count), number(objects)});
    }

    HRESULT STDMETHODCALLTYPE MakeResident(UINT count, IDMLPageable* const* objects) override
    {
        return called("MakeResident", {number(count), number(objects)});
    }

    HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override { return called("GetDeviceRemovedReason", {}); }

    HRESULT STDMETHODCALLTYPE GetParentDevice(REFIID riid, void** object) override
    {
        return called("GetParentDevice", {number(&riid), number(object)});
    }

    HRESULT STDMETHODCALLTYPE
    CompileGraph(const DML_GRAPH_DESC* desc, DML_EXECUTION_FLAGS flags, REFIID riid, void** object) override
    {
        return called("CompileGraph", {number(desc), number(std::uint32_t(flags)), number(&riid), number(object)});
    }

    HRESULT result;
    std::vector<StandInOperator> created;
    bool makes_operators;
    bool keeps_calls;
    std::vector<Call> calls;

private:
    HRESULT called(const char* method, std::initializer_list<std::uintptr_t> arguments)
    {
        if (keeps_calls) { calls.push_back({method, arguments}); }
        return result;
    }

    bool has_device1_;
    std::atomic<ULONG> count_;
};

#endif
