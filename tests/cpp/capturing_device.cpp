// Asks a capturing device for all that it promises: `capturing_device FOLDER`. It leaves files in the folder for the test
// in Python to read.
#include "stand_in_device.h"

#include <dml_tile/capturing_device.h>

#include <new>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// What is allocated, and how often there is memory. Clang's thread sanitizer lets nobody else define these operators.

static std::atomic<int> allocations(0);
static std::atomic<int> allocations_left(1000000);

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ALLOCATES_BY_ITSELF
#endif
#endif

#if defined(ALLOCATES_BY_ITSELF)
static const int counted = 0;
#else
static const int counted = 1;

void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    ++allocations;
    return --allocations_left >= 0 ? std::malloc(size) : nullptr;
}

void* operator new(std::size_t size)
{
    void* const memory = operator new(size, std::nothrow);
    REQUIRE(memory != nullptr);
    return memory;
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
#endif

namespace
{

// FLOAT32 {2} tiled twice; refused where `repeats` is not 2.
struct Tile
{
    explicit Tile(UINT repeats)
        : sizes{2}, tiled{4}, repeated{repeats},
          buffers{{DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, sizes, nullptr, 8, 0},
                  {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, tiled, nullptr, 16, 0}},
          input{DML_TENSOR_TYPE_BUFFER, &buffers[0]}, output{DML_TENSOR_TYPE_BUFFER, &buffers[1]},
          tile{&input, &output, 1, repeated}, desc{DML_OPERATOR_TILE, &tile}
    {
    }

    Tile(const Tile&) = delete;
    Tile& operator=(const Tile&) = delete;

    UINT sizes[1], tiled[1], repeated[1];
    DML_BUFFER_TENSOR_DESC buffers[2];
    DML_TENSOR_DESC input, output;
    DML_TILE_OPERATOR_DESC tile;
    DML_OPERATOR_DESC desc;
};

template <class Character>
IDMLDevice1* capturing(StandInDevice& device, const Character* path)
{
    void* made = nullptr;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), path, ids::device1, &made) == 0);
    device.calls.clear();
    return static_cast<IDMLDevice1*>(made);
}

void fails_without_a_trace(const std::string& path)
{
    StandInDevice device, older(false);
    device.keeps_calls = false;
    void* made = &device;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), "x", ids::device, nullptr) == null_pointer);
    REQUIRE(dml_tile::CreateCapturingDevice(nullptr, path.c_str(), ids::device, &made) == invalid_argument && !made);
    made = &device;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), static_cast<const char*>(nullptr), ids::device, &made) ==
            invalid_argument);
    REQUIRE(made == nullptr);
    made = &device;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), path.c_str(), ids::nobodys, &made) == no_interface);
    REQUIRE(made == nullptr);
    made = &device;
    REQUIRE(dml_tile::CreateCapturingDevice(older.get(), path.c_str(), ids::device1, &made) == no_interface);
    REQUIRE(made == nullptr);
    for (int there_are = 0; counted && there_are < 3; ++there_are)  // of the device, its path and its label
    {
        made = &device;
        allocations_left = there_are;
        REQUIRE(dml_tile::CreateCapturingDevice(device.get(), path.c_str(), ids::device, &made, "x") == out_of_memory);
        REQUIRE(made == nullptr);
    }
    allocations_left = 1000000;
    REQUIRE(device.count() == 1 && older.count() == 1);
    device.Release();
    older.Release();
}

void has_one_identity(const std::string& path)
{
    StandInDevice device;
    device.keeps_calls = false;
    const int before = allocations;
    IDMLDevice1* const made = capturing(device, path.c_str());
    REQUIRE(allocations == before + 2 * counted);
    void* unknown = nullptr;
    REQUIRE(made->QueryInterface(ids::unknown, &unknown) == 0);
    for (const GUID& id : {ids::object, ids::device, ids::device1})
    {
        void *found = nullptr, *again = nullptr;
        REQUIRE(made->QueryInterface(id, &found) == 0);
        REQUIRE(static_cast<IUnknown*>(found)->QueryInterface(ids::unknown, &again) == 0);
        REQUIRE(again == unknown && found != static_cast<IDMLDevice*>(device.get()));
        static_cast<IUnknown*>(found)->Release();
        static_cast<IUnknown*>(again)->Release();
    }
    void* found = made;
    REQUIRE(made->QueryInterface(ids::debug_device, &found) == 0 && found == device.get());
    device.Release();
    REQUIRE(made->QueryInterface(ids::nobodys, &found) == no_interface && found == nullptr);
    REQUIRE(made->QueryInterface(ids::device, nullptr) == null_pointer);
    REQUIRE(made->AddRef() == 3 && made->Release() == 2);
    REQUIRE(static_cast<IUnknown*>(unknown)->Release() == 1 && device.count() > 1);
    REQUIRE(made->Release() == 0 && device.count() == 1);
    device.Release();
}

void an_older_device_stays_one(const std::string& path)
{
    StandInDevice device(false);
    void *made = nullptr, *found = &device;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), path.c_str(), ids::device, &made) == 0);
    IDMLDevice* const older = static_cast<IDMLDevice*>(made);
    REQUIRE(older->QueryInterface(ids::device1, &found) == no_interface && found == nullptr);
    REQUIRE(older->QueryInterface(ids::unknown, &found) == 0 && found == made);
    REQUIRE(older->Release() == 1 && older->Release() == 0 && device.count() == 1);
    device.Release();
}

void passes_each_call_on(const std::string& path)
{
    StandInDevice device;
    IDMLDevice1* const made = capturing(device, path.c_str());
    void* const there = &device;
    void* object = nullptr;
    UINT size = 0;
    const GUID& id = ids::nobodys;
    const auto flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE;
    const auto asked = DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT;
    const auto op = static_cast<IDMLOperator*>(there);
    const auto operators = static_cast<IDMLCompiledOperator* const*>(there);
    const auto pageables = static_cast<IDMLPageable* const*>(there);
    const auto table = static_cast<const DML_BINDING_TABLE_DESC*>(there);
    const DML_GRAPH_DESC graph = {};
    for (const HRESULT result : {HRESULT(0), HRESULT(1), removed, invalid_argument})
    {
        for (void** const out : {&object, static_cast<void**>(nullptr)})
        {
            device.result = result;
            device.calls.clear();
            REQUIRE(made->GetPrivateData(id, &size, out) == result);
            REQUIRE(made->SetPrivateData(id, 7, out) == result);
            REQUIRE(made->SetPrivateDataInterface(id, made) == result);
            REQUIRE(made->SetName(L"name") == result);
            REQUIRE(made->CheckFeatureSupport(asked, 1, there, 2, out) == result);
            REQUIRE(made->CreateOperator(nullptr, id, out) == result);
            REQUIRE(made->CompileOperator(op, flags, id, out) == result);
            REQUIRE(made->CreateOperatorInitializer(3, operators, id, out) == result);
            REQUIRE(made->CreateCommandRecorder(id, out) == result);
            REQUIRE(made->CreateBindingTable(table, id, out) == result);
            REQUIRE(made->Evict(4, pageables) == result);
            REQUIRE(made->MakeResident(5, pageables) == result);
            REQUIRE(made->GetDeviceRemovedReason() == result);
            REQUIRE(made->GetParentDevice(id, out) == result);
            REQUIRE(made->CompileGraph(&graph, flags, id, out) == result);
            const std::uintptr_t to = number(out), at = number(there), guid = number(&id);
            const std::vector<Call> expected = {
                {"GetPrivateData", {guid, number(&size), to}},
                {"SetPrivateData", {guid, 7, to}},
                {"SetPrivateDataInterface", {guid, number(static_cast<IUnknown*>(made))}},
                {"SetName", {number(L"name")}},
                {"CheckFeatureSupport", {1, at, 2, to}},
                {"CreateOperator", {0, guid, to}},
                {"CompileOperator", {at, 4, guid, to}},
                {"CreateOperatorInitializer", {3, at, guid, to}},
                {"CreateCommandRecorder", {guid, to}},
                {"CreateBindingTable", {at, guid, to}},
                {"Evict", {4, at}},
                {"MakeResident", {5, at}},
                {"GetDeviceRemovedReason", {}},
                {"GetParentDevice", {guid, to}},
                {"CompileGraph", {number(&graph), 4, guid, to}},
            };
            REQUIRE(device.calls.size() == expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i)
            {
                REQUIRE(device.calls[i].method == expected[i].method);
                REQUIRE(expected[i].method == "SetName" || device.calls[i] == expected[i]);
            }
        }
    }
    REQUIRE(made->Release() == 0 && device.count() == 1);
    device.Release();
}

// Two tiles and an identity, of which one tile fails; by a device, and by a device before that.
void writes_each_operator(const std::string& inner, const wchar_t* outer)
{
    StandInDevice device;
    IDMLDevice1* const first = capturing(device, inner.c_str());
    void* made = nullptr;
    REQUIRE(dml_tile::CreateCapturingDevice(first, outer, ids::device1, &made, "outer \"device\"") == 0);
    IDMLDevice1* const second = static_cast<IDMLDevice1*>(made);
    REQUIRE(first->Release() >= 1);
    const Tile good(2), bad(3);
    const DML_OPERATOR_DESC identity = {static_cast<DML_OPERATOR_TYPE>(1), nullptr};
    device.keeps_calls = false;
    const int before = allocations;
    void* op = nullptr;
    device.makes_operators = true;
    REQUIRE(second->CreateOperator(&good.desc, ids::nobodys, &op) == 0 && op == &device.created.back());
    device.result = invalid_argument;
    REQUIRE(second->CreateOperator(&identity, ids::nobodys, nullptr) == invalid_argument);
    REQUIRE(second->CreateOperator(&bad.desc, ids::nobodys, nullptr) == invalid_argument);
    device.result = 0;
    const DML_OPERATOR_GRAPH_NODE_DESC node = {&device.created.back(), nullptr};
    const DML_GRAPH_NODE_DESC nodes[] = {{DML_GRAPH_NODE_TYPE_OPERATOR, &node}, {DML_GRAPH_NODE_TYPE_OPERATOR, &node}};
    const DML_INPUT_GRAPH_EDGE_DESC input = {0, 0, 0, nullptr};
    const DML_OUTPUT_GRAPH_EDGE_DESC output = {1, 0, 0, nullptr};
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC inner_edge = {0, 0, 1, 0, nullptr};
    const DML_GRAPH_EDGE_DESC edges[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &input},
                                         {DML_GRAPH_EDGE_TYPE_OUTPUT, &output},
                                         {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &inner_edge}};
    const DML_GRAPH_DESC graph = {1, 1, 2, nodes, 1, &edges[0], 1, &edges[1], 1, &edges[2]};
    device.result = invalid_argument;  // {2} tiled twice does not take the {4} of another
    REQUIRE(second->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, ids::nobodys, nullptr) == invalid_argument);
    const UINT data[] = {1, 2};
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = {data, sizeof data, nullptr};
    const DML_GRAPH_NODE_DESC fed[] = {{DML_GRAPH_NODE_TYPE_CONSTANT, &constant}, {DML_GRAPH_NODE_TYPE_OPERATOR, &node}};
    const DML_GRAPH_DESC with_a_constant = {0, 1, 2, fed, 0, nullptr, 1, &edges[1], 1, &edges[2]};
    device.result = 0;
    REQUIRE(second->CompileGraph(&with_a_constant, DML_EXECUTION_FLAG_NONE, ids::nobodys, nullptr) == 0);
    const DML_INPUT_GRAPH_EDGE_DESC into_last = {0, 0, 0, nullptr};
    const DML_OUTPUT_GRAPH_EDGE_DESC from_first = {0, 0, 0, nullptr};
    const DML_GRAPH_EDGE_DESC ends[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &into_last}, {DML_GRAPH_EDGE_TYPE_OUTPUT, &from_first}};
    const DML_GRAPH_DESC alone = {1, 1, 1, nodes, 1, &ends[0], 1, &ends[1], 0, nullptr};
    device.result = 0;
    REQUIRE(second->CompileGraph(&alone, DML_EXECUTION_FLAG_NONE, ids::nobodys, nullptr) == 0);
    REQUIRE(allocations == before);
    REQUIRE(second->Release() == 0 && device.count() == 1);
    device.Release();
}

// A function that can only be moved, and throws at its second line.
struct Keeps
{
    Keeps(std::vector<std::string>* lines, std::mutex* mutex) : lines_(lines), mutex_(mutex) {}
    Keeps(Keeps&&) = default;

    void operator()(const char* line, std::size_t length)
    {
        const std::lock_guard<std::mutex> lock(*mutex_);
        REQUIRE(line[length] == '\0');
        lines_->emplace_back(line, length);
        if (lines_->size() == 2) { throw length; }
    }

private:
    std::vector<std::string>* lines_;
    std::mutex* mutex_;
};

void gives_lines_to_a_function()
{
    StandInDevice device;
    device.keeps_calls = false;
    std::vector<std::string> lines;
    std::mutex mutex;
    void* made = nullptr;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), Keeps(&lines, &mutex), ids::device, &made, "\\ \n") == 0);
    IDMLDevice* const capturing = static_cast<IDMLDevice*>(made);
    const Tile tile(2);
    device.result = invalid_argument;
    REQUIRE(capturing->CreateOperator(nullptr, ids::nobodys, nullptr) == invalid_argument);
    device.result = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
    {
        threads.emplace_back([capturing, &tile] {
            REQUIRE(capturing->CreateOperator(&tile.desc, ids::nobodys, nullptr) == 0);
        });
    }
    for (std::thread& thread : threads) { thread.join(); }
    REQUIRE(capturing->Release() == 0 && device.count() == 1);
    REQUIRE(lines.size() == 10);
    const std::string session = lines[0].substr(lines[0].find("\"session\""), 30);
    REQUIRE(lines[0] == "{\"dml_tile_capture\":1,\"hresult\":null," + session + ",\"call\":1,\"feature_level\":\"0x00006200\","
                        "\"label\":\"\\\\  \",\"operator\":null}");
    REQUIRE(lines[1] == "{\"dml_tile_capture\":1,\"hresult\":\"0x80070057\"," + session + ",\"call\":1}");
    device.Release();
}

void serves_threads(const std::string& path)
{
    StandInDevice device;
    device.keeps_calls = false;
    IDMLDevice1* const made = capturing(device, path.c_str());
    const Tile tile(2);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
    {
        made->AddRef();
        threads.emplace_back([made, &tile] {
            for (int j = 0; j < 50; ++j)
            {
                void* found = nullptr;
                REQUIRE(made->QueryInterface(ids::device, &found) == 0);
                REQUIRE(static_cast<IDMLDevice*>(found)->CreateOperator(&tile.desc, ids::nobodys, nullptr) == 0);
                static_cast<IUnknown*>(found)->Release();
            }
            made->Release();  // any of them may be the last
        });
    }
    made->Release();
    for (std::thread& thread : threads) { thread.join(); }
    REQUIRE(device.count() == 1);
    device.Release();
}

// The parent's device and the child's stand at one address and make calls of the same numbers.
void tells_forked_processes_apart(const std::string& path)
{
    StandInDevice device;
    device.keeps_calls = false;
    device.makes_operators = true;
    IDMLDevice1* const made = capturing(device, path.c_str());
    const Tile good(2), bad(3);
    void* op = nullptr;
    REQUIRE(made->CreateOperator(&good.desc, ids::nobodys, &op) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    const DML_OPERATOR_GRAPH_NODE_DESC node = {static_cast<IDMLOperator*>(op), nullptr};
    const DML_GRAPH_NODE_DESC nodes[] = {{DML_GRAPH_NODE_TYPE_OPERATOR, &node}};
    const DML_GRAPH_DESC graph = {0, 0, 1, nodes, 0, nullptr, 0, nullptr, 0, nullptr};
    device.result = child == 0 ? invalid_argument : 0;
    REQUIRE(made->CreateOperator(child == 0 ? &bad.desc : &good.desc, ids::nobodys, nullptr) == device.result);
    made->CompileGraph(&graph, DML_EXECUTION_FLAG_NONE, ids::nobodys, nullptr);
    if (child == 0) { _exit(EXIT_SUCCESS); }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(made->Release() == 0 && device.count() == 1);
    device.Release();
}

}  // namespace

int main(int count, char** arguments)
{
    REQUIRE(count == 2);
    const std::string folder = std::string(arguments[1]) + "/";
    fails_without_a_trace(folder + "unused.jsonl");
    has_one_identity(folder + "unused.jsonl");
    an_older_device_stays_one(folder + "unused.jsonl");
    passes_each_call_on(folder + std::string(5000, 'x') + "/no/such/folder.jsonl");
    std::wstring wide(folder.begin(), folder.end());
    writes_each_operator(folder + "inner.jsonl", (wide + L"\u00FC\u2603\U0001F9E9.jsonl").c_str());
    gives_lines_to_a_function();
    tells_forked_processes_apart(folder + "forked.jsonl");
    serves_threads(folder + "threads.jsonl");
    return EXIT_SUCCESS;
}
