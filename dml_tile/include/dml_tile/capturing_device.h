// dml_tile/capturing_device.h: a device that writes down every operator that is created on it, for `dml-tile check`.
//
//     ComPtr<IDMLDevice1> capturing;
//     HRESULT hr = dml_tile::CreateCapturingDevice(device.Get(), "operators.jsonl", IID_PPV_ARGS(&capturing));
//     dml::Graph graph(capturing.Get());
//
// It passes each call on to the application's device. Before each CreateOperator and CompileGraph it appends a line that
// describes the operator or the graph, and after it one with the HRESULT, so that a call that ends the process is seen:
// libraries that call these themselves, such as DirectMLX, need no line of their own. Then, on any machine:
// `dml-tile check operators.jsonl --target windows-10-22h2`.
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
#include <type_traits>
#include <utility>

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

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
typedef IDMLDevice1 HighestDevice;
#else
typedef IDMLDevice HighestDevice;
#endif

// Interfaces by their identifiers, which are written here since elsewhere than on Windows nobody may define them.
enum class Interface { unknown, object, device, device1, other };

inline const GUID& id_of(Interface which) noexcept
{
    static const GUID ids[] = {
        {0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}},
        {0xC8263AAC, 0x9E0C, 0x4A2D, {0x9B, 0x8E, 0x00, 0x75, 0x21, 0xA3, 0x31, 0x7C}},
        {0x6DBD6437, 0x96FD, 0x423F, {0xA9, 0x8C, 0xAE, 0x5E, 0x7C, 0x2A, 0x57, 0x3F}},
        {0xA0884F9A, 0xD2BE, 0x4355, {0xAA, 0x5D, 0x59, 0x01, 0x28, 0x1A, 0xD1, 0xD2}}};
    return ids[static_cast<int>(which)];
}

inline Interface interface_of(REFIID riid) noexcept
{
    int found = 0;
    while (found < 4 && std::memcmp(&id_of(static_cast<Interface>(found)), &riid, sizeof riid) != 0)
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

// A copy of a text, as a device keeps a path and its label.
template <class Character>
class Text
{
public:
    explicit Text(const Character* text) noexcept : text_(nullptr), state_(text == nullptr ? invalid_argument : 0)
    {
        if (text == nullptr)
        {
            return;
        }
        std::size_t size = 1;
        while (text[size - 1] != Character())
        {
            ++size;
        }
        text_ = static_cast<Character*>(::operator new(size * sizeof(Character), std::nothrow));
        state_ = text_ == nullptr ? out_of_memory : 0;
        if (text_ != nullptr)
        {
            std::memcpy(text_, text, size * sizeof(Character));
        }
    }

    ~Text() { ::operator delete(text_); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    const Character* c_str() const noexcept { return text_; }
    HRESULT state() const noexcept { return state_; }

private:
    Character* text_;
    HRESULT state_;
};

// A destination, as a device keeps it.
template <class To, class Other = typename std::decay<To>::type>
using Kept = typename std::conditional<
    std::is_convertible<To, const char*>::value, Text<char>,
    typename std::conditional<std::is_convertible<To, const wchar_t*>::value, Text<wchar_t>, Other>::type>::type;

template <class To>
HRESULT state_of(const To&) noexcept
{
    return 0;
}

template <class Character>
HRESULT state_of(const Text<Character>& text) noexcept
{
    return text.state();
}

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
const std::uint32_t max_entries = 1u << 20;  // of a graph's array

// Adds the count of edges, and the edges after `name`. Only the type is read of an edge whose type is not its array's.
inline void add_edges(
    Line& line, UINT count, const char* name, const DML_GRAPH_EDGE_DESC* edges, std::uint32_t expected,
    const char* fields) noexcept
{
    add_array<DML_GRAPH_EDGE_DESC>(
        line.number(count).add(name), edges, count, max_entries, [=](Line& to, const DML_GRAPH_EDGE_DESC& edge) {
            static const UINT zeros[4] = {};
            const std::uint32_t type = bits_of(edge.Type);
            if (edge.Desc == nullptr)
            {
                to.add("null");
                return;
            }
            to.add("{\"Type\":").number(type);
            add_fields(to, fields, type == expected ? edge.Desc : zeros, 0, ",\"");
        });
}

// Adds a node: the number of the call that created its operator, which the operator has as private data, or 0 if this device
// did not create it; or the size of a constant's data; and its name.
inline void add_node(Line& line, const DML_GRAPH_NODE_DESC& node, const GUID& tag) noexcept
{
    if (node.Desc == nullptr)
    {
        line.add("null");
        return;
    }
    const std::uint32_t type = bits_of(node.Type);
    IDMLOperator* const op = type == 1 ? read<IDMLOperator*>(node.Desc) : nullptr;
    line.add("{\"Type\":").number(type).add(",\"Operator\":");
    if (op == nullptr)
    {
        line.add("null");
    }
    else
    {
        UINT call = 0, size = sizeof call;
        const HRESULT hr = op->GetPrivateData(tag, &size, &call);
        line.number(hr >= 0 && size == sizeof call ? call : 0u);
    }
    const auto desc = static_cast<const char*>(node.Desc);
    if (type == 2)  // a DML_CONSTANT_DATA_GRAPH_NODE_DESC, which DirectML.h has from 6_2 on: Data, DataSize, Name
    {
        line.add(",\"DataSize\":").number(std::uint64_t(read<std::size_t>(desc + sizeof(void*))));
    }
    const char* const name = type == 1 || type == 2 ? read<const char*>(desc + type * sizeof(void*)) : nullptr;
    if (name != nullptr)
    {
        line.add(",\"Name\":").quoted(name);
    }
    line.add("}");
}

inline void add_graph(Line& line, const DML_GRAPH_DESC* graph, const GUID& tag) noexcept
{
    if (graph == nullptr)
    {
        line.add("null");
        return;
    }
    line.add("{\"InputCount\":").number(graph->InputCount).add(",\"OutputCount\":").number(graph->OutputCount);
    line.add(",\"NodeCount\":").number(graph->NodeCount).add(",\"Nodes\":");
    const auto add = [&tag](Line& to, const DML_GRAPH_NODE_DESC& node) { add_node(to, node, tag); };
    add_array<DML_GRAPH_NODE_DESC>(line, graph->Nodes, graph->NodeCount, max_entries, add);
    add_edges(
        line.add(",\"InputEdgeCount\":"), graph->InputEdgeCount, ",\"InputEdges\":", graph->InputEdges, 1,
        "u GraphInputIndex, u ToNodeIndex, u ToNodeInputIndex");
    add_edges(
        line.add(",\"OutputEdgeCount\":"), graph->OutputEdgeCount, ",\"OutputEdges\":", graph->OutputEdges, 2,
        "u FromNodeIndex, u FromNodeOutputIndex, u GraphOutputIndex");
    add_edges(
        line.add(",\"IntermediateEdgeCount\":"), graph->IntermediateEdgeCount, ",\"IntermediateEdges\":",
        graph->IntermediateEdges, 3, "u FromNodeIndex, u FromNodeOutputIndex, u ToNodeIndex, u ToNodeInputIndex");
    line.add("}");
}
#endif

// An object that counts its references.
template <class Base>
class Counted : public Base
{
public:
    Counted() noexcept : references_(1) {}
    virtual ~Counted() {}
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

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

private:
    std::atomic<ULONG> references_;
};

// A device before a device.
template <class To>
class CapturingDevice final : public Counted<HighestDevice>
{
public:
    static HRESULT create(IDMLDevice* device, To&& to, const char* label, REFIID riid, void** capturing) noexcept
    {
        CapturingDevice* made = nullptr;
        completes([&] { made = new (std::nothrow) CapturingDevice(device, std::forward<To>(to), label); });
        if (made == nullptr)
        {
            return out_of_memory;
        }
        HRESULT hr = label == nullptr ? 0 : made->label_.state();
        hr = hr < 0 ? hr : state_of(made->to_);
        hr = hr < 0 ? hr : made->QueryInterface(riid, capturing);
        made->Release();
        return hr;
    }

    // IUnknown

    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID riid, void** object) override
    {
        if (object == nullptr)
        {
            return null_pointer;
        }
        *object = nullptr;
        const Interface which = interface_of(riid);
        if (which == Interface::other)
        {
            const HRESULT hr = device_->QueryInterface(riid, object);
            *object = hr < 0 ? nullptr : *object;
            return hr;
        }
        if (which == Interface::device1 && device1_ == nullptr)
        {
            return no_interface;
        }
        *object = static_cast<HighestDevice*>(this);  // each of the interfaces begins where it does
        AddRef();
        return 0;
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
        const Call call = called(session(), [desc](Line& line) {
            line.add(",\"operator\":");
            add_operator(line, desc, max_depth);
        });
        const HRESULT hr = returned(call, device_->CreateOperator(desc, riid, object));
        void* found = nullptr;
        if (hr >= 0 && object != nullptr && *object != nullptr &&
            static_cast<IUnknown*>(*object)->QueryInterface(id_of(Interface::object), &found) >= 0)
        {
            static_cast<IDMLObject*>(found)->SetPrivateData(tag(call.session), sizeof call.number, &call.number);
            static_cast<IDMLObject*>(found)->Release();
        }
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
        const std::uint64_t in_session = session();
        const GUID id = tag(in_session);
        const Call call = called(in_session, [desc, flags, &id](Line& line) {
            line.add(",\"flags\":").number(bits_of(flags)).add(",\"graph\":");
            add_graph(line, desc, id);
        });
        return returned(call, device1_->CompileGraph(desc, flags, riid, object));
    }
#endif

private:
    struct Call
    {
        std::uint64_t session;
        UINT number;
    };

    CapturingDevice(IDMLDevice* device, To&& to, const char* label)
        : to_(std::forward<To>(to)), label_(label), calls_(0), device_(device), device1_(nullptr),
          level_(level_of(device)), is_null_(is_null_device(device)), process_(process()), session_(new_session())
    {
        device_->AddRef();
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
        // Asked for once: its answer may not change. It may be another pointer than the device's.
        void* found = nullptr;
        if (device_->QueryInterface(id_of(Interface::device1), &found) >= 0)
        {
            device1_ = static_cast<HighestDevice*>(found);
        }
#endif
    }

    ~CapturingDevice() override
    {
        if (device1_ != nullptr)
        {
            device1_->Release();
        }
        device_->Release();
    }

    static std::uint64_t process() noexcept
    {
#if defined(_WIN32)
        return GetCurrentProcessId();
#else
        return static_cast<std::uint64_t>(::getpid());
#endif
    }

    std::uint64_t new_session() const noexcept
    {
#if defined(_WIN32)
        FILETIME time;
        GetSystemTimeAsFileTime(&time);
        const std::uint64_t now = std::uint64_t(time.dwHighDateTime) << 32 | time.dwLowDateTime;
#else
        timespec time = {};
        ::clock_gettime(CLOCK_REALTIME, &time);
        const std::uint64_t now = static_cast<std::uint64_t>(time.tv_sec) * 1000000000u + static_cast<std::uint64_t>(time.tv_nsec);
#endif
        return now * 0x9E3779B97F4A7C15u ^ process() << 48 ^ reinterpret_cast<std::uintptr_t>(this);
    }

    // Tells the lines of this device from those of others, in this process and others. After fork(), the child has the
    // parent's device and its number of calls, so it begins a session. Threads that do so at once do not wait for each other:
    // each gets a session that no other process has, and all soon get the same.
    std::uint64_t session() noexcept
    {
        const bool is_known = process_.load(std::memory_order_acquire) == process();
        std::uint64_t session = session_.load(std::memory_order_acquire);
        if (!is_known)
        {
            const std::uint64_t begun = new_session();
            session = session_.compare_exchange_strong(session, begun, std::memory_order_acq_rel) ? begun : session;
            process_.store(process(), std::memory_order_release);
        }
        return session;
    }

    // The key of the private data of operators.
    static GUID tag(std::uint64_t session) noexcept
    {
        GUID id = {0x6C6D746C, 0x6C69, 0x4165, {0, 0, 0, 0, 0, 0, 0, 0}};
        std::memcpy(id.Data4, &session, sizeof session);
        return id;
    }

    static void begin_line(Line& line, const HRESULT* hr, const Call& call) noexcept
    {
        begin(line, hr).add(",\"session\":").hexadecimal(call.session, 16).add(",\"call\":").number(call.number);
    }

    // Describes a call that is about to be made.
    template <class Describe>
    Call called(std::uint64_t in_session, Describe describe) noexcept
    {
        const Call call = {in_session, ++calls_};
        Line line;
        begin_line(line, nullptr, call);
        add_device(line, level_, is_null_);
        if (label_.c_str() != nullptr)
        {
            line.add(",\"label\":").quoted(label_.c_str());
        }
        describe(line);
        give(to_, line.add("}"), Ways<3>());
        return call;
    }

    HRESULT returned(const Call& call, HRESULT hr) noexcept
    {
        Line line;
        begin_line(line, is_null_ ? nullptr : &hr, call);
        give(to_, line.add("}"), Ways<3>());
        return hr;
    }

    Kept<To> to_;
    const Text<char> label_;
    std::atomic<UINT> calls_;
    IDMLDevice* const device_;
    HighestDevice* device1_;
    const std::uint32_t level_;
    const bool is_null_;
    std::atomic<std::uint64_t> process_;
    std::atomic<std::uint64_t> session_;
};

}  // namespace detail

// Gives a device that holds `device`, passes each call on to it, and gives lines to `to`, which is what dml_tile::capture
// takes: a path, which is copied, or a function, which is moved and may be called by several threads at once. Lines that
// cannot be written change nothing. `label`, in UTF-8, stands in each line.
//
// It is thread-safe, and answers for IUnknown, IDMLObject, IDMLDevice, and IDMLDevice1 where `device` has that; for other
// interfaces `device` answers. What it creates is not wrapped: GetDevice of an operator gives `device`. Operators get
// private data, by which a graph's line names them.
//
// Returns E_POINTER without `capturing`, E_INVALIDARG without a device or path, E_NOINTERFACE for an interface that
// neither has, E_OUTOFMEMORY; then *capturing is null, and nothing is held.
template <class To>
HRESULT CreateCapturingDevice(
    IDMLDevice* device, To&& to, REFIID riid, void** capturing, const char* label = nullptr) noexcept
{
    if (capturing == nullptr)
    {
        return detail::null_pointer;
    }
    *capturing = nullptr;
    return device == nullptr ? detail::invalid_argument
                             : detail::CapturingDevice<To>::create(device, std::forward<To>(to), label, riid, capturing);
}

}  // inline namespace
}  // namespace dml_tile

#endif  // DML_TILE_CAPTURING_DEVICE_H
