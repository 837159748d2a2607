// dml_tile/capture.h: writes down the operators that an application makes, for `dml-tile check`.
//
//     HRESULT hr = device->CreateOperator(&desc, IID_PPV_ARGS(&op));
//     dml_tile::capture("tiles.jsonl", desc, hr, device);
//
// Each call appends one line of JSON: a DML_OPERATOR_DESC, of operators other than Tile the type alone, the HRESULT, and
// the highest feature level of the device. Then, on any machine: `dml-tile check tiles.jsonl --target windows-10-22h2`.
// A unit test without DirectML writes `dml_tile::capture("tiles.jsonl", desc)`. dml_tile/capturing_device.h captures
// every operator without a line beside each.
//
// C++11, without dependencies, nothing to link. It includes the DirectML.h that the application includes. It allocates
// nothing, throws nothing, takes null pointers everywhere, and reads of an array what DirectML reads: nothing where its
// count is above 8. Lines are whole, also with several threads, processes and DLLs.
#ifndef DML_TILE_CAPTURE_H
#define DML_TILE_CAPTURE_H

#include <DirectML.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(_WIN32)
#include <windows.h>
#else
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>
#endif

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
#define DML_TILE_TRY try
#define DML_TILE_CATCH_ALL catch (...)
#else
#define DML_TILE_TRY if (true)
#define DML_TILE_CATCH_ALL else
#endif

// What depends on DML_TARGET_VERSION has another name where that differs, so that translation units may differ in it.
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
#define DML_TILE_SINCE since_2_1
#elif DML_TARGET_VERSION >= 0x2000
#define DML_TILE_SINCE since_2_0
#else
#define DML_TILE_SINCE since_1_0
#endif

namespace dml_tile
{
inline namespace DML_TILE_SINCE
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

    Line& add(const char* part) noexcept
    {
        const std::size_t length = std::strlen(part);
        if (length < sizeof text_ - size_)
        {
            std::memcpy(text_ + size_, part, length + 1);
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

// The highest feature level of a device; 0 where there is none, or the device does not say.
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

// A line without its end; without an HRESULT, that is null, and so is a feature level of 0.
inline void describe(Line& line, const DML_OPERATOR_DESC* desc, const HRESULT* hr, std::uint32_t level) noexcept
{
    line.add("{\"dml_tile_capture\":1,\"hresult\":");
    if (hr == nullptr)
    {
        line.add("null");
    }
    else
    {
        line.hexadecimal(static_cast<std::uint32_t>(*hr));
    }
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

// The system's own characters of paths, and a path as these: of any length that the system opens, else empty.
#if defined(_WIN32)
typedef wchar_t PathChar;
typedef char OtherChar;
#else
typedef char PathChar;
typedef wchar_t OtherChar;
#endif

class NativePath
{
public:
    explicit NativePath(const OtherChar* path) noexcept;

    const PathChar* text() const noexcept { return text_; }

private:
    void add(std::uint32_t code) noexcept;
    void put(std::uint32_t unit) noexcept;

    PathChar text_[4096];
    std::size_t size_;
};

// A file that is appended to: the system puts each write at the end of whatever others have written by then. Neither
// another's lock nor, except on Windows, a pipe that nobody reads stops it.
class AppendedFile
{
public:
    explicit AppendedFile(const PathChar* path) noexcept;
    ~AppendedFile();
    AppendedFile(const AppendedFile&) = delete;
    AppendedFile& operator=(const AppendedFile&) = delete;

    bool is_open() const noexcept;

    // Whether the last byte is no end of a line, as where a process ended while it wrote.
    bool ends_within_a_line() const noexcept;

    bool write(const char* text, std::size_t size) const noexcept;

private:
#if defined(_WIN32)
    HANDLE file_;
#else
    const int file_;
    const int reading_;  // the same file; of a pipe, an end that keeps writing from raising SIGPIPE
#endif
};

#if defined(_WIN32)

inline NativePath::NativePath(const char* path) noexcept : size_(0)
{
    const int room = static_cast<int>(sizeof text_ / sizeof *text_);
    if (MultiByteToWideChar(CP_ACP, 0, path, -1, text_, room) == 0)
    {
        text_[0] = L'\0';
    }
}

// FILE_APPEND_DATA without FILE_WRITE_DATA: the system itself puts each write at the end, so that no other is overwritten.
inline AppendedFile::AppendedFile(const wchar_t* path) noexcept
    : file_(CreateFileW(
          path, FILE_APPEND_DATA | FILE_READ_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
          OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr))
{
}

inline AppendedFile::~AppendedFile()
{
    if (is_open())
    {
        CloseHandle(file_);
    }
}

inline bool AppendedFile::is_open() const noexcept { return file_ != INVALID_HANDLE_VALUE; }

inline bool AppendedFile::ends_within_a_line() const noexcept
{
    LARGE_INTEGER back;
    back.QuadPart = -1;
    char last = '\n';
    DWORD count = 0;
    return SetFilePointerEx(file_, back, nullptr, FILE_END) != 0 && ReadFile(file_, &last, 1, &count, nullptr) != 0 &&
           count == 1 && last != '\n';
}

inline bool AppendedFile::write(const char* text, std::size_t size) const noexcept
{
    DWORD count = 0;
    return WriteFile(file_, text, static_cast<DWORD>(size), &count, nullptr) != 0 && count == size;
}

#else

// UTF-8, whatever the locale.
inline NativePath::NativePath(const wchar_t* path) noexcept : size_(0)
{
    for (; *path != L'\0'; ++path)
    {
        add(static_cast<std::uint32_t>(*path));
    }
    text_[size_ < sizeof text_ ? size_ : 0] = '\0';
}

inline void NativePath::add(std::uint32_t code) noexcept
{
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    put(more == 0 ? code : ((0xFF00u >> (more + 1)) & 0xFF) | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i)
    {
        put(0x80 | ((code >> (6 * i)) & 0x3F));
    }
}

inline void NativePath::put(std::uint32_t unit) noexcept
{
    if (size_ < sizeof text_)
    {
        text_[size_++] = static_cast<char>(static_cast<unsigned char>(unit));
    }
}

inline AppendedFile::AppendedFile(const char* path) noexcept
    : file_(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)),
      reading_(file_ < 0 ? -1 : ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
{
}

inline AppendedFile::~AppendedFile()
{
    for (const int each : {file_, reading_})
    {
        if (each >= 0)
        {
            ::close(each);
        }
    }
}

inline bool AppendedFile::is_open() const noexcept { return file_ >= 0; }

// Looked at again for a moment: a line that another is writing ends soon. A longer one gets a blank line behind it.
inline bool AppendedFile::ends_within_a_line() const noexcept
{
    const timespec moment = {0, 100000};
    for (int i = 0; i < 20; ++i)
    {
        char last = '\n';
        if (::lseek(reading_, -1, SEEK_END) < 0 || ::read(reading_, &last, 1) != 1 || last == '\n')
        {
            return false;
        }
        ::nanosleep(&moment, nullptr);
    }
    return true;
}

inline bool AppendedFile::write(const char* text, std::size_t size) const noexcept
{
    ssize_t count = 0;
    do
    {
        count = ::write(file_, text, size);
    } while (count < 0 && errno == EINTR);
    return count >= 0 && static_cast<std::size_t>(count) == size;
}

#endif

// Appends a line, after the end of the one before, in a single write.
inline bool append(const PathChar* path, const Line& line) noexcept
{
    if (path == nullptr)
    {
        return false;
    }
    const AppendedFile file(path);
    if (!file.is_open())
    {
        return false;
    }
    Line whole;
    whole.add(file.ends_within_a_line() ? "\n" : "").add(line.text()).add("\n");
    return file.write(whole.text(), whole.size());
}

inline bool append(const OtherChar* path, const Line& line) noexcept
{
    return path != nullptr && append(NativePath(path).text(), line);
}

// Where a line goes to: tags that choose an overload of `give`.
struct Narrow {};
struct Wide {};
struct Named {};
struct Callable {};
struct Unknown {};

template <class To, class Text>
struct NamesFile
{
    template <class T>
    static auto test(int) -> std::is_convertible<decltype(std::declval<const T&>().c_str()), const Text*>;
    template <class>
    static std::false_type test(...);
    static const bool value = decltype(test<To>(0))::value;
};

template <class To>
struct TakesLine
{
    template <class T>
    static auto test(int)
        -> decltype(std::declval<T&>()(std::declval<const char*>(), std::declval<std::size_t>()), std::true_type());
    template <class>
    static std::false_type test(...);
    static const bool value = decltype(test<To>(0))::value;
};

template <bool Condition, class Yes, class No>
using Choice = typename std::conditional<Condition, Yes, No>::type;

template <class To, class Value = typename std::remove_reference<To>::type>
using Kind = Choice<
    std::is_convertible<To, const char*>::value, Narrow,
    Choice<
        std::is_convertible<To, const wchar_t*>::value, Wide,
        Choice<
            NamesFile<Value, char>::value || NamesFile<Value, wchar_t>::value, Named,
            Choice<TakesLine<Value>::value, Callable, Unknown>>>>;

inline bool give(const char* path, const Line& line, Narrow) noexcept { return append(path, line); }

inline bool give(const wchar_t* path, const Line& line, Wide) noexcept { return append(path, line); }

template <class Path>
bool give(const Path& path, const Line& line, Named) noexcept
{
    return append(path.c_str(), line);
}

template <class To>
bool give(const To&, const Line&, Unknown) noexcept
{
    return false;
}

template <class Sink>
bool give(Sink& sink, const Line& line, Callable) noexcept
{
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

template <class To>
bool give_to(To& to, const DML_OPERATOR_DESC* desc, const HRESULT* hr, std::uint32_t level) noexcept
{
    static_assert(
        !std::is_same<Kind<To&>, Unknown>::value,
        "dml_tile::capture takes the name of a file, as const char*, const wchar_t* or an object with c_str(), or a "
        "function that takes (const char* line, std::size_t length)");
    Line line;
    describe(line, desc, hr, level);
    return give(to, line, Kind<To&>());
}

}  // namespace detail

// Gives a line to `to`: appends it to the file of that name, which is a const char*, a const wchar_t* (elsewhere than on
// Windows taken as UTF-8) or an object with c_str(), such as a std::string or std::filesystem::path; or calls
// `to(const char* line, std::size_t length)`, where the line is without its end. What that throws is dropped.
//
// `device` is what CreateOperator was called on, as a pointer of any kind, such as IDMLDevice* or ComPtr<IDMLDevice>;
// without one, the line has no feature level. Returns whether the line was written.
template <class To, class Device = std::nullptr_t>
bool capture(To&& to, const DML_OPERATOR_DESC* desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    return detail::give_to(to, desc, &hr, detail::level_of(device));
}

template <class To, class Device = std::nullptr_t>
bool capture(To&& to, const DML_OPERATOR_DESC& desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    return detail::give_to(to, &desc, &hr, detail::level_of(device));
}

// The same without a call of CreateOperator, as in tests on a machine without DirectML: `check` judges the descriptor,
// and has no HRESULT to compare with.
template <class To>
bool capture(To&& to, const DML_OPERATOR_DESC* desc) noexcept
{
    return detail::give_to(to, desc, nullptr, 0);
}

template <class To>
bool capture(To&& to, const DML_OPERATOR_DESC& desc) noexcept
{
    return detail::give_to(to, &desc, nullptr, 0);
}

}  // namespace DML_TILE_SINCE
}  // namespace dml_tile

#undef DML_TILE_TRY
#undef DML_TILE_CATCH_ALL

#endif  // DML_TILE_CAPTURE_H
