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
#include <chrono>
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

// The destination and the label of a device. Texts lie behind the device, in the same memory.
struct Room
{
    std::size_t bytes;
};

template <class Character>
std::size_t bytes_of(const Character* text) noexcept
{
    std::size_t length = 0;
    while (text != nullptr && text[length] != Character())
    {
        ++length;
    }
    return text == nullptr ? 0 : (length + 1) * sizeof(Character);
}

template <class Character>
void move_text(const Character*& text, char*& room) noexcept
{
    const std::size_t bytes = bytes_of(text);
    text = bytes == 0 ? nullptr : static_cast<Character*>(std::memcpy(room, text, bytes));
    room += bytes;
}

// A destination of each kind, as a device keeps it.
template <class To, class Tag>
struct Kept
{
    typedef typename std::decay<To>::type Type;
    static std::size_t bytes(const Type&) noexcept { return 0; }
    static void move(Type&, char*&) noexcept {}
    static bool is_null(const Type&) noexcept { return false; }
};

template <class Character>
struct KeptText
{
    typedef const Character* Type;
    static std::size_t bytes(Type text) noexcept { return bytes_of(text); }
    static void move(Type& text, char*& room) noexcept { move_text(text, room); }
    static bool is_null(Type text) noexcept { return text == nullptr; }
};

template <class To>
struct Kept<To, Narrow> : KeptText<char> {};
template <class To>
struct Kept<To, Wide> : KeptText<wchar_t> {};

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
const std::uint32_t max_entries = 1u << 20;  // of a graph's array

// Adds `"InputEdgeCount":1,"InputEdges":[…]`. Of an edge of another type than its array's, the type alone is read.
inline void add_edges(
    Line& line, const char* name, UINT count, const DML_GRAPH_EDGE_DESC* edges, const char* const* fields) noexcept
{
    const std::uint32_t expected = *name == 'O' ? 2 : name[2] == 'p' ? 1 : 3;
    line.add(",\"").add(name).add("EdgeCount\":").number(std::uint64_t(count)).add(",\"").add(name).add("Edges\":");
    add_array<DML_GRAPH_EDGE_DESC>(line, edges, count, max_entries, [=](Line& to, const DML_GRAPH_EDGE_DESC& edge) {
        const char* const indices = static_cast<const char*>(edge.Desc);
        const std::uint32_t type = bits_of(edge.Type);
        to.add(indices == nullptr ? "null" : "{\"Type\":");
        for (std::size_t i = 0; indices != nullptr && fields[i] != nullptr; ++i)
        {
            const std::uint64_t index = type == expected ? read<std::uint32_t>(indices + i * sizeof(UINT)) : 0;
            (i == 0 ? to.number(std::uint64_t(type)) : to).add(",\"").add(fields[i]).add("\":").number(index);
        }
        to.add(indices == nullptr ? "" : "}");
    });
}

// Adds a graph. Its operators are the numbers of the calls that created them, which they have as private data; 0 is one that
// this device did not create.
inline void add_graph(Line& line, const DML_GRAPH_DESC* graph, const GUID& tag) noexcept
{
    if (graph == nullptr)
    {
        line.add("null");
        return;
    }
    static const char* const input[] = {"GraphInputIndex", "ToNodeIndex", "ToNodeInputIndex", nullptr};
    static const char* const output[] = {"FromNodeIndex", "FromNodeOutputIndex", "GraphOutputIndex", nullptr};
    static const char* const inner[] = {"FromNodeIndex", "FromNodeOutputIndex", "ToNodeIndex", "ToNodeInputIndex", nullptr};
    line.add("{\"InputCount\":").number(std::uint64_t(graph->InputCount));
    line.add(",\"OutputCount\":").number(std::uint64_t(graph->OutputCount));
    line.add(",\"NodeCount\":").number(std::uint64_t(graph->NodeCount)).add(",\"Nodes\":");
    const auto add_node = [&tag](Line& to, const DML_GRAPH_NODE_DESC& node) {
        const std::uint32_t type = bits_of(node.Type);
        const auto desc = static_cast<const DML_OPERATOR_GRAPH_NODE_DESC*>(node.Desc);
        if (desc == nullptr)
        {
            to.add("null");
            return;
        }
        to.add("{\"Type\":").number(std::uint64_t(type)).add(",\"Operator\":");
        UINT call = 0, size = sizeof call;
        if (type != 1 || desc->Operator == nullptr)
        {
            to.add("null}");
            return;
        }
        const HRESULT hr = desc->Operator->GetPrivateData(tag, &size, &call);
        to.number(std::uint64_t(hr >= 0 && size == sizeof call ? call : 0)).add("}");
    };
    add_array<DML_GRAPH_NODE_DESC>(line, graph->Nodes, graph->NodeCount, max_entries, add_node);
    add_edges(line, "Input", graph->InputEdgeCount, graph->InputEdges, input);
    add_edges(line, "Output", graph->OutputEdgeCount, graph->OutputEdges, output);
    add_edges(line, "Intermediate", graph->IntermediateEdgeCount, graph->IntermediateEdges, inner);
    line.add("}");
}
#endif

// A device before a device.
template <class To>
class CapturingDevice final : public HighestDevice
{
public:
    typedef Kept<To, Kind<To>> Keep;

    static HRESULT create(IDMLDevice* device, To&& to, const char* label, REFIID riid, void** capturing) noexcept
    {
        CapturingDevice* made = nullptr;
        DML_TILE_TRY
        {
            typename Keep::Type kept(std::forward<To>(to));
            if (Keep::is_null(kept))
            {
                return invalid_argument;
            }
            const Room room = {Keep::bytes(kept) + bytes_of(label)};
            made = new (room) CapturingDevice(device, std::move(kept), label);
        }
        DML_TILE_CATCH_ALL
        {
        }
        if (made == nullptr)
        {
            return out_of_memory;
        }
        const HRESULT hr = made->QueryInterface(riid, capturing);
        made->Release();
        return hr;
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
        const UINT call = called([desc](Line& line) {
            line.add(",\"operator\":");
            add_operator(line, desc, max_depth);
        });
        const HRESULT hr = returned(call, device_->CreateOperator(desc, riid, object));
        void* found = nullptr;
        if (hr >= 0 && object != nullptr && *object != nullptr &&
            static_cast<IUnknown*>(*object)->QueryInterface(id_of(Interface::object), &found) >= 0)
        {
            static_cast<IDMLObject*>(found)->SetPrivateData(tag(), sizeof call, &call);
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
        const GUID id = tag();
        const UINT call = called([desc, flags, &id](Line& line) {
            line.add(",\"flags\":").number(std::uint64_t(bits_of(flags))).add(",\"graph\":");
            add_graph(line, desc, id);
        });
        return returned(call, device1_->CompileGraph(desc, flags, riid, object));
    }
#endif

private:
    CapturingDevice(IDMLDevice* device, typename Keep::Type&& to, const char* label)
        : to_(std::move(to)), label_(label), references_(1), calls_(0), device_(device), device1_(nullptr),
          level_(level_of(device)), session_(new_session())
    {
        char* room = reinterpret_cast<char*>(this + 1);
        Keep::move(to_, room);
        move_text(label_, room);
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

    ~CapturingDevice()
    {
        if (device1_ != nullptr)
        {
            device1_->Release();
        }
        device_->Release();
    }

    static void* operator new(std::size_t size, Room room) noexcept
    {
        return ::operator new(size + room.bytes, std::nothrow);
    }

    static void operator delete(void* memory, Room) noexcept { ::operator delete(memory); }

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

    // Tells the lines of this device from those of others, in this process and others.
    std::uint64_t new_session() const noexcept
    {
#if defined(_WIN32)
        const std::uint64_t process = GetCurrentProcessId();
#else
        const std::uint64_t process = static_cast<std::uint64_t>(::getpid());
#endif
        const auto now = std::chrono::system_clock::now().time_since_epoch().count();
        return static_cast<std::uint64_t>(now) * 0x9E3779B97F4A7C15u ^ process << 48 ^ reinterpret_cast<std::uintptr_t>(this);
    }

    // The key of the private data of operators.
    GUID tag() const noexcept
    {
        GUID id = {0x6C6D746C, 0x6C69, 0x4165, {0, 0, 0, 0, 0, 0, 0, 0}};
        std::memcpy(id.Data4, &session_, sizeof session_);
        return id;
    }

    void begin_line(Line& line, const HRESULT* hr, UINT call) const noexcept
    {
        begin(line, hr).add(",\"session\":").hexadecimal(session_, 16).add(",\"call\":").number(std::uint64_t(call));
    }

    // Describes a call that is about to be made, and returns its number.
    template <class Describe>
    UINT called(Describe describe) noexcept
    {
        const UINT call = ++calls_;
        Line line;
        begin_line(line, nullptr, call);
        add_level(line, level_);
        if (label_ != nullptr)
        {
            line.add(",\"label\":").quoted(label_);
        }
        describe(line);
        give(to_, line.add("}"), Kind<typename Keep::Type&>());
        return call;
    }

    HRESULT returned(UINT call, HRESULT hr) noexcept
    {
        Line line;
        begin_line(line, &hr, call);
        give(to_, line.add("}"), Kind<typename Keep::Type&>());
        return hr;
    }

    typename Keep::Type to_;
    const char* label_;
    std::atomic<ULONG> references_;
    std::atomic<UINT> calls_;
    IDMLDevice* const device_;
    HighestDevice* device1_;
    const std::uint32_t level_;
    const std::uint64_t session_;
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
    DML_TILE_REQUIRE_DESTINATION("dml_tile::CreateCapturingDevice", To&);
    if (capturing == nullptr)
    {
        return detail::null_pointer;
    }
    *capturing = nullptr;
    return device == nullptr ? detail::invalid_argument
                             : detail::CapturingDevice<To>::create(device, std::forward<To>(to), label, riid, capturing);
}

}  // namespace DML_TILE_SINCE
}  // namespace dml_tile

#endif  // DML_TILE_CAPTURING_DEVICE_H
