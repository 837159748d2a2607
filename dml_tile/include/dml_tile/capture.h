// dml_tile/capture.h: writes down the operators that an application makes, for `dml-tile check`.
//
//     HRESULT hr = device->CreateOperator(&desc, IID_PPV_ARGS(&op));
//     dml_tile::capture("tiles.jsonl", desc, hr, device);
//
// Each call appends one line of JSON: a DML_OPERATOR_DESC, of operators other than Tile the type alone, the HRESULT, and
// the highest feature level of the device. Then, on any machine: `dml-tile check tiles.jsonl --target windows-10-22h2`.
//
// C++11, one header, nothing to link. It includes the DirectML.h that the application includes. It allocates nothing,
// throws nothing, takes null pointers everywhere, and reads of an array what DirectML reads: nothing where its count is
// above 8. Lines are whole, also with several threads and processes.
#ifndef DML_TILE_CAPTURE_H
#define DML_TILE_CAPTURE_H

#include <DirectML.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <type_traits>

#if defined(_MSC_VER)
#include <share.h>
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define DML_TILE_TRY try
#define DML_TILE_CATCH_ALL catch (...)
#else
#define DML_TILE_TRY if (true)
#define DML_TILE_CATCH_ALL else
#endif

namespace dml_tile
{
namespace detail
{

// Values of DirectML's enumerators, as numbers: what is captured may be none of them.
const std::uint32_t operator_tile = 70;
const std::uint32_t max_tensor_type = 1;
const std::uint32_t max_dimensions = 8;

// An enumerator's bits, also where they are no enumerator's.
template <class Enumeration>
std::uint32_t bits_of(const Enumeration& value) noexcept
{
    static_assert(sizeof(Enumeration) == sizeof(std::uint32_t), "DirectML's enumerations have 32 bits");
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A line of text, of which the longest that can occur is half as long as there is room.
class Line
{
public:
    Line() noexcept : size_(0) { text_[0] = '\0'; }

    const char* text() const noexcept { return text_; }
    std::size_t size() const noexcept { return size_; }

    Line& add(const char* text) noexcept
    {
        const std::size_t length = std::strlen(text);
        if (length < sizeof text_ - size_)
        {
            std::memcpy(text_ + size_, text, length + 1);
            size_ += length;
        }
        return *this;
    }

    Line& number(std::uint64_t value) noexcept
    {
        char digits[21];
        std::size_t first = sizeof digits - 1;
        digits[first] = '\0';
        do
        {
            digits[--first] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        return add(digits + first);
    }

    Line& hexadecimal(std::uint32_t value) noexcept
    {
        char digits[] = "\"0x00000000\"";
        for (std::size_t i = 10; value != 0; --i, value /= 16)
        {
            digits[i] = "0123456789ABCDEF"[value % 16];
        }
        return add(digits);
    }

private:
    char text_[4096];
    std::size_t size_;
};

// An array; empty where DirectML refuses its count before it looks: there may be no memory behind it.
inline void add_array(Line& line, const UINT* values, std::uint32_t count) noexcept
{
    if (values == nullptr)
    {
        line.add("null");
        return;
    }
    line.add("[");
    for (std::uint32_t i = 0; count <= max_dimensions && i < count; ++i)
    {
        line.add(i == 0 ? "" : ",").number(values[i]);
    }
    line.add("]");
}

inline void add_buffer(Line& line, const DML_BUFFER_TENSOR_DESC* buffer) noexcept
{
    if (buffer == nullptr)
    {
        line.add("null");
        return;
    }
    line.add("{\"DataType\":").number(bits_of(buffer->DataType));
    line.add(",\"Flags\":").number(bits_of(buffer->Flags));
    line.add(",\"DimensionCount\":").number(buffer->DimensionCount);
    line.add(",\"Sizes\":");
    add_array(line, buffer->Sizes, buffer->DimensionCount);
    line.add(",\"Strides\":");
    add_array(line, buffer->Strides, buffer->DimensionCount);
    line.add(",\"TotalTensorSizeInBytes\":").number(buffer->TotalTensorSizeInBytes);
    line.add(",\"GuaranteedBaseOffsetAlignment\":").number(buffer->GuaranteedBaseOffsetAlignment).add("}");
}

inline void add_tensor(Line& line, const DML_TENSOR_DESC* tensor) noexcept
{
    if (tensor == nullptr)
    {
        line.add("null");
        return;
    }
    const std::uint32_t type = bits_of(tensor->Type);
    line.add("{\"Type\":").number(type).add(",\"Desc\":");
    add_buffer(line, type <= max_tensor_type ? static_cast<const DML_BUFFER_TENSOR_DESC*>(tensor->Desc) : nullptr);
    line.add("}");
}

inline void add_tile(Line& line, const DML_TILE_OPERATOR_DESC* tile) noexcept
{
    if (tile == nullptr)
    {
        line.add("null");
        return;
    }
    line.add("{\"InputTensor\":");
    add_tensor(line, tile->InputTensor);
    line.add(",\"OutputTensor\":");
    add_tensor(line, tile->OutputTensor);
    line.add(",\"RepeatsCount\":").number(tile->RepeatsCount).add(",\"Repeats\":");
    add_array(line, tile->Repeats, tile->RepeatsCount);
    line.add("}");
}

inline void add_operator(Line& line, const DML_OPERATOR_DESC* desc) noexcept
{
    if (desc == nullptr)
    {
        line.add("null");
        return;
    }
    const std::uint32_t type = bits_of(desc->Type);
    line.add("{\"Type\":").number(type);
    if (type == operator_tile)
    {
        line.add(",\"Desc\":");
        add_tile(line, static_cast<const DML_TILE_OPERATOR_DESC*>(desc->Desc));
    }
    line.add("}");
}

// The highest feature level of a device; 0 where there is none, or it does not tell.
inline std::uint32_t level_of(std::nullptr_t) noexcept { return 0; }

template <class Device>
std::uint32_t level_of(const Device& device) noexcept
{
    std::uint32_t level = 0;
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2000
    DML_TILE_TRY
    {
        if (!device)
        {
            return 0;
        }
        // Those that an older DirectML does not know are passed over.
        static const std::uint32_t numbers[] = {
            0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000,
            0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400};
        const UINT count = sizeof numbers / sizeof *numbers;
        DML_FEATURE_LEVEL levels[sizeof numbers / sizeof *numbers];
        static_assert(sizeof levels == sizeof numbers, "DirectML's enumerations have 32 bits");
        std::memcpy(levels, numbers, sizeof levels);
        DML_FEATURE_QUERY_FEATURE_LEVELS query = {};
        query.RequestedFeatureLevelCount = count;
        query.RequestedFeatureLevels = levels;
        DML_FEATURE_DATA_FEATURE_LEVELS data = {};
        if (device->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof query, &query, sizeof data, &data) >= 0)
        {
            level = bits_of(data.MaxSupportedFeatureLevel);
        }
    }
    DML_TILE_CATCH_ALL
    {
    }
#else
    static_cast<void>(device);
#endif
    return level;
}

template <class Device>
void describe(Line& line, const DML_OPERATOR_DESC* desc, HRESULT hr, const Device& device) noexcept
{
    line.add("{\"dml_tile_capture\":1,\"hresult\":").hexadecimal(static_cast<std::uint32_t>(hr));
    const std::uint32_t level = level_of(device);
    line.add(",\"feature_level\":");
    if (level == 0)
    {
        line.add("null");
    }
    else
    {
        line.hexadecimal(level);
    }
    line.add(",\"operator\":");
    add_operator(line, desc);
    line.add("}");
}

inline std::FILE* opened(const char* path) noexcept
{
#if defined(_MSC_VER)
    return _fsopen(path, "ab", _SH_DENYNO);
#else
    return std::fopen(path, "ab");
#endif
}

// Appends a line in a single write, at the end of whatever others have written by then.
inline bool append(const char* path, Line& line) noexcept
{
    std::FILE* file = path == nullptr ? nullptr : opened(path);
    if (file == nullptr)
    {
        return false;
    }
    char buffer[8192];
    std::setvbuf(file, buffer, _IOFBF, sizeof buffer);
    line.add("\n");
    const bool is_written = std::fwrite(line.text(), 1, line.size(), file) == line.size();
    return (std::fclose(file) == 0) && is_written;
}

inline bool append_alone(const char* path, Line& line) noexcept
{
    DML_TILE_TRY
    {
        static std::mutex one_at_a_time;
        const std::lock_guard<std::mutex> guard(one_at_a_time);
        return append(path, line);
    }
    DML_TILE_CATCH_ALL
    {
        return false;
    }
}

}  // namespace detail

// Appends a line to the file at `path`. `device` is what CreateOperator was called on, as a pointer of any kind, such
// as IDMLDevice* or ComPtr<IDMLDevice>; without one, the line has no feature level. Returns whether it was written.
template <class Device = std::nullptr_t>
bool capture(
    const char* path, const DML_OPERATOR_DESC* desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    detail::Line line;
    detail::describe(line, desc, hr, device);
    return detail::append_alone(path, line);
}

template <class Device = std::nullptr_t>
bool capture(
    const char* path, const DML_OPERATOR_DESC& desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    return capture(path, &desc, hr, device);
}

// Gives the line, without its end, to `sink(const char* line, std::size_t length)`. What that throws is dropped, and
// false is returned.
template <
    class Sink, class Device = std::nullptr_t,
    class = typename std::enable_if<!std::is_convertible<Sink, const char*>::value>::type>
bool capture(Sink&& sink, const DML_OPERATOR_DESC* desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    detail::Line line;
    detail::describe(line, desc, hr, device);
    DML_TILE_TRY
    {
        sink(line.text(), line.size());
        return true;
    }
    DML_TILE_CATCH_ALL
    {
        return false;
    }
}

template <
    class Sink, class Device = std::nullptr_t,
    class = typename std::enable_if<!std::is_convertible<Sink, const char*>::value>::type>
bool capture(Sink&& sink, const DML_OPERATOR_DESC& desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    return capture(sink, &desc, hr, device);
}

}  // namespace dml_tile

#undef DML_TILE_TRY
#undef DML_TILE_CATCH_ALL

#endif  // DML_TILE_CAPTURE_H
