// Captures random descriptors into a file, from two threads or more: `capture_random FILE COUNT [THREADS]`. As a library,
// it gives them.
#include "random_descs.h"

#include <dml_tile/capture.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

struct FakeDevice
{
    HRESULT CheckFeatureSupport(DML_FEATURE, UINT, const void* query, UINT, void* data)
    {
        const auto& asked = *static_cast<const DML_FEATURE_QUERY_FEATURE_LEVELS*>(query);
        std::uint32_t level = 0;
        for (UINT i = 0; i < asked.RequestedFeatureLevelCount; ++i)
        {
            std::uint32_t each = 0;
            std::memcpy(&each, asked.RequestedFeatureLevels + i, sizeof each);
            if (each <= 0x5200 && each > level) { level = each; }
        }
        std::memcpy(data, &level, sizeof level);
        return refuses ? static_cast<HRESULT>(0x80070057u) : 0;
    }

    HRESULT GetPrivateData(const GUID&, UINT*, void*) { return static_cast<HRESULT>(0x887A0002u); }

    bool refuses = false;
};

bool callbacks_work()
{
    RandomDesc one(1);
    std::string line;
    FakeDevice device, refusing;
    refusing.refuses = true;
    FakeDevice* none = nullptr;
    const auto keep = [&line](const char* text, std::size_t size) { line.assign(text, size); };
    const auto fail = [](const char*, std::size_t) { throw std::runtime_error("full"); };
    return dml_tile::capture(keep, one.get(), 0) && line.find("\"feature_level\":null") != std::string::npos &&
           dml_tile::capture(keep, one.get(), 0, &device) && line.find("\"0x00005200\"") != std::string::npos &&
           dml_tile::capture(keep, one.get(), 0, &refusing) && line.find("null") != std::string::npos &&
           dml_tile::capture(keep, one.get(), 0, none) && line.back() == '}' &&
           !dml_tile::capture(fail, one.get(), 0) &&
           !dml_tile::capture(static_cast<const char*>(nullptr), one.get(), 0) &&
           !dml_tile::capture("/no/such/folder/tiles.jsonl", one.get(), 0);
}

void capture_range(const char* path, std::uint64_t first, std::uint64_t end)
{
    FakeDevice device;
    for (std::uint64_t seed = first; seed < end; ++seed)
    {
        const RandomDesc desc(seed);
        const auto hr = static_cast<HRESULT>(seed);  // which tells the line's descriptor
        if (desc.get() ? !dml_tile::capture(path, *desc.get(), hr, &device)
                       : !dml_tile::capture(path, nullptr, hr, &device))
        {
            std::abort();
        }
    }
}

}  // namespace

extern "C" const DML_OPERATOR_DESC* random_desc(std::uint64_t seed)
{
    static std::unique_ptr<RandomDesc> last;
    last.reset(new RandomDesc(seed));
    return last->get();
}

int main(int count, char** arguments)
{
    if (count < 3 || !callbacks_work()) { return EXIT_FAILURE; }
    const std::uint64_t end = std::strtoull(arguments[2], nullptr, 10);
    const std::uint64_t shares = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 2;
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < shares; ++i)
    {
        threads.emplace_back(capture_range, arguments[1], end * i / shares, end * (i + 1) / shares);
    }
    for (std::thread& thread : threads) { thread.join(); }
    return EXIT_SUCCESS;
}
