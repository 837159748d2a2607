// dml_tile/capture.h: writes down the operators that an application makes, for `dml-tile check`.
//
//     HRESULT hr = device->CreateOperator(&desc, IID_PPV_ARGS(&op));
//     dml_tile::capture("operators.jsonl", desc, hr, device);
//
// Each call appends one line of JSON: a DML_OPERATOR_DESC, of any operator, the HRESULT, and the highest feature level of
// the device. Then, on any machine: `dml-tile check operators.jsonl --target windows-10-22h2`. A unit test without
// DirectML writes `dml_tile::capture("operators.jsonl", desc)`. dml_tile/capturing_device.h captures every operator
// without a line beside each, also one that CreateOperator does not return from.
//
// C++11, without dependencies, nothing to link. It includes the DirectML.h that the application includes, of whichever
// version. It allocates memory for long lines only, throws nothing, takes null pointers everywhere, and reads nothing of an
// array whose count is above 8, or 65536 for tensors. Lines are whole, also with several threads, processes and DLLs.
#ifndef DML_TILE_CAPTURE_H
#define DML_TILE_CAPTURE_H

#include <DirectML.h>
#include <dml_tile/operator_fields.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <new>

#if defined(_WIN32)
#include <windows.h>
#else
#include <cerrno>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>
#endif

namespace dml_tile
{
// What depends on DML_TARGET_VERSION has another name where that differs, so that translation units may differ in it.
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

const std::uint32_t max_tensor_type = 1;
const std::uint32_t max_numbers = 8;      // of an array
const std::uint32_t max_tensors = 65536;  // of an array
const int max_depth = 3;                  // of operators within operators

// An enumerator's bits, also where they are no enumerator's.
template <class Enumeration>
std::uint32_t bits_of(const Enumeration& value) noexcept
{
    static_assert(sizeof(Enumeration) == sizeof(std::uint32_t), "DirectML's enumerations have 32 bits");
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// A line of text. Without memory for a long one, it is not whole.
class Line
{
public:
    Line() noexcept : text_(own_), size_(1), room_(sizeof own_), is_whole_(true) { own_[0] = '\n'; }
    ~Line() { release(); }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    const char* text() const noexcept { return text_ + 1; }
    const char* after_end_of_line() const noexcept { return text_; }
    std::size_t size() const noexcept { return size_ - 1; }
    bool is_whole() const noexcept { return is_whole_; }

    Line& add(const char* part) noexcept { return add(part, std::strlen(part)); }

    Line& add(const char* part, std::size_t length) noexcept
    {
        is_whole_ = is_whole_ && (length < room_ - size_ || grow(length));
        if (is_whole_)
        {
            std::memcpy(text_ + size_, part, length);
            size_ += length;
            text_[size_] = '\0';
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

    Line& number(std::uint32_t value) noexcept { return number(std::uint64_t(value)); }

    Line& number(std::int32_t value) noexcept
    {
        const auto bits = static_cast<std::uint32_t>(value);
        return value < 0 ? add("-").number(0u - bits) : number(bits);
    }

    // A FLOAT, exactly, whatever the locale.
    Line& number(float value) noexcept
    {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        if ((bits & 0x7F800000) == 0x7F800000)
        {
            return add((bits & 0x007FFFFF) != 0 ? "\"NaN\"" : bits >> 31 != 0 ? "\"-Infinity\"" : "\"Infinity\"");
        }
        char digits[32];
        std::snprintf(digits, sizeof digits, "%.17g", static_cast<double>(value));
        const std::size_t whole = std::strspn(digits, "-0123456789");
        const std::size_t fraction = std::strcspn(digits + whole, "e0123456789");
        return add(digits, whole).add(fraction != 0 ? "." : "").add(digits + whole + fraction);
    }

    Line& hexadecimal(std::uint64_t value, int count = 8) noexcept
    {
        add("\"0x");
        while (--count >= 0)
        {
            add(&"0123456789ABCDEF"[(value >> (4 * count)) & 15], 1);
        }
        return add("\"");
    }

    // A text in UTF-8; other bytes become question marks, so that the line is JSON.
    Line& quoted(const char* value) noexcept
    {
        std::size_t size = 0;
        for (add("\""); *value != '\0'; value += size)
        {
            const std::size_t valid = character(value);
            size = valid == 0 ? 1 : valid;
            const bool is_special = *value == '"' || *value == '\\';
            const bool is_control = static_cast<unsigned char>(*value) < 0x20;
            add(is_special ? "\\" : "").add(is_control ? " " : valid == 0 ? "?" : value, size);
        }
        return add("\"");
    }

private:
    // The bytes of the character of UTF-8 that a text begins with; 0 where it is none.
    static std::size_t character(const char* text) noexcept
    {
        const auto byte = [text](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[i]); };
        const unsigned first = byte(0), second = first < 0x80 ? 0 : byte(1);
        const std::size_t size = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
        if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
            (first == 0xF4 && second > 0x8F))
        {
            return 0;
        }
        for (std::size_t i = 1; i < size; ++i)
        {
            if ((byte(i) & 0xC0) != 0x80)
            {
                return 0;
            }
        }
        return size;
    }

    bool grow(std::size_t length) noexcept
    {
        const std::size_t room = 2 * (size_ + length) + 1;
        char* const text = static_cast<char*>(::operator new(room, std::nothrow));
        if (text == nullptr)
        {
            return false;
        }
        std::memcpy(text, text_, size_);
        release();
        text_ = text;
        room_ = room;
        return true;
    }

    void release() noexcept
    {
        if (text_ != own_)
        {
            ::operator delete(text_);
        }
    }

    char own_[4096];
    char* text_;
    std::size_t size_;
    std::size_t room_;
    bool is_whole_;
};

// The value at an address, of whatever type the object there is.
template <class Value>
Value read(const void* at) noexcept
{
    Value value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// Adds the entries of an array; none where its count is above what DirectML takes: there may be no memory behind it.
template <class Entry, class Add>
Line& add_array(Line& line, const void* entries, std::uint32_t count, std::uint32_t most, Add add) noexcept
{
    if (entries == nullptr)
    {
        return line.add("null");
    }
    line.add("[");
    for (std::uint32_t i = 0; count <= most && i < count; ++i)
    {
        add(line.add(i == 0 ? "" : ","), static_cast<const Entry*>(entries)[i]);
    }
    return line.add("]");
}

// The fields of a struct, one by one, as a string like those of operator_fields.h has them; "l" is a UINT64. Where C puts a
// field follows from the kinds of those before it.
class Fields
{
public:
    Fields(const char* fields, const void* desc) noexcept
        : kind('\0'), name(""), name_size(0), desc_(static_cast<const char*>(desc)), rest_(fields), count_(0), end_(0)
    {
    }

    bool next() noexcept
    {
        if (*rest_ == '\0')
        {
            return false;
        }
        kind = *rest_++;
        for (counter_ = 0; *rest_ >= '0' && *rest_ <= '9'; ++rest_)
        {
            counter_ = counter_ * 10 + static_cast<std::size_t>(*rest_ - '0');
        }
        name = rest_ + (*rest_ == '?' ? 2 : 1);
        name_size = std::strcspn(name, ":,");
        rest_ = name + std::strcspn(name, ",");
        rest_ += *rest_ == ',' ? 2 : 0;
        struct Wide
        {
            char before;
            UINT64 value;  // as in DML_SCALAR_UNION
        };
        const bool is_word = std::strchr("uifbez", kind) != nullptr, is_wide = kind == 'x' || kind == 'l';
        const std::size_t alignment = is_word ? 4 : is_wide ? sizeof(Wide) - 8 : sizeof(void*);
        const std::size_t offset = (end_ + alignment - 1) / alignment * alignment;
        end_ = offset + (is_wide || kind == 'z' ? 8 : alignment);
        offsets_[count_++] = offset;
        return true;
    }

    std::size_t offset() const noexcept { return offsets_[count_ - 1]; }

    template <class Value>
    Value value(std::size_t beyond = 0) const noexcept
    {
        return read<Value>(desc_ + offset() + beyond);
    }

    // Adds an array of numbers.
    template <class Number>
    Line& add_numbers(Line& line) const noexcept
    {
        const auto add = [](Line& to, const Number& number) { to.number(number); };
        return add_array<Number>(line, value<const void*>(), count(), max_numbers, add);
    }

    // The count of an array's entries.
    std::uint32_t count() const noexcept { return read<std::uint32_t>(desc_ + offsets_[counter_]); }

    char kind;
    const char* name;
    std::size_t name_size;

private:
    const char* desc_;
    const char* rest_;
    std::size_t count_;
    std::size_t counter_;
    std::size_t end_;
    std::size_t offsets_[32];
};

inline Line& add_fields(Line& line, const char* fields, const void* desc, int depth, const char* before = "{\"") noexcept;

inline Line& add_tensor(Line& line, const DML_TENSOR_DESC& tensor) noexcept
{
    const std::uint32_t type = bits_of(tensor.Type);
    line.add("{\"Type\":").number(type).add(",\"Desc\":");
    const void* const desc = type <= max_tensor_type ? tensor.Desc : nullptr;
    return add_fields(
               line,
               "e DataType, e Flags, u DimensionCount, U2 Sizes, U2 Strides, l TotalTensorSizeInBytes, "
               "u GuaranteedBaseOffsetAlignment",
               desc, 0)
        .add("}");
}

// Adds an operator; of a type that is not in operator_fields.h, without Desc.
inline Line& add_operator(Line& line, const DML_OPERATOR_DESC* desc, int depth) noexcept
{
    if (desc == nullptr)
    {
        return line.add("null");
    }
    const std::uint32_t type = bits_of(desc->Type);
    const char* const fields = dml_tile_fields::of_operator(type);
    line.add("{\"Type\":").number(type);
    if (fields != nullptr)
    {
        add_fields(line.add(",\"Desc\":"), fields, depth == 0 ? nullptr : desc->Desc, depth - 1);
    }
    return line.add("}");
}

inline Line& add_field(Line& line, const Fields& field, int depth) noexcept
{
    switch (field.kind)
    {
    case 'u':
    case 'e':
        return line.number(field.value<std::uint32_t>());
    case 'i':
    case 'b':
        return line.number(field.value<std::int32_t>());
    case 'f':
        return line.number(field.value<float>());
    case 'l':
        return line.number(field.value<std::uint64_t>());
    case 'x':
        return line.hexadecimal(field.value<std::uint64_t>(), 16);
    case 'z':
        line.add("{\"Width\":").number(field.value<std::uint32_t>());
        return line.add(",\"Height\":").number(field.value<std::uint32_t>(4)).add("}");
    case 'U':
        return field.add_numbers<UINT>(line);
    case 'I':
        return field.add_numbers<std::int32_t>(line);
    case 'F':
        return field.add_numbers<float>(line);
    default:
        break;
    }
    const void* const there = field.value<const void*>();
    const auto add_inner = [depth](Line& to, const DML_OPERATOR_DESC& desc) { add_operator(to, &desc, depth); };
    switch (there == nullptr ? '\0' : field.kind)
    {
    case 'T':
        return add_array<DML_TENSOR_DESC>(line, there, field.count(), max_tensors, add_tensor);
    case 'O':
        return add_array<DML_OPERATOR_DESC>(line, there, field.count(), max_numbers, add_inner);
    case 't':
        return add_tensor(line, *static_cast<const DML_TENSOR_DESC*>(there));
    case 'o':
        return add_operator(line, static_cast<const DML_OPERATOR_DESC*>(there), depth);
    case 's':
        return add_fields(line, "f Scale, f Bias", there, 0);
    default:
        return line.add("null");
    }
}

// Adds a struct, with `before` in front of its first field; null where there is none.
inline Line& add_fields(Line& line, const char* fields, const void* desc, int depth, const char* before) noexcept
{
    if (desc == nullptr)
    {
        return line.add("null");
    }
    Fields field(fields, desc);
    for (; field.next(); before = ",\"")
    {
        add_field(line.add(before).add(field.name, field.name_size).add("\":"), field, depth);
    }
    return line.add("}");
}

// Calls a function of the application's, and drops what it throws. Returns whether it came to its end.
template <class Function>
bool completes(Function function) noexcept
{
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND)
    try
    {
        function();
    }
    catch (...)
    {
        return false;
    }
#else
    function();
#endif
    return true;
}

// The highest feature level of a device; 0 where there is none, or the device does not say.
inline std::uint32_t level_of(std::nullptr_t) noexcept { return 0; }

template <class Device>
std::uint32_t level_of(const Device& device) noexcept
{
    std::uint32_t level = 0;
#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2000
    completes([&device, &level] {
        if (!device)
        {
            return;
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
    });
#else
    static_cast<void>(device);
#endif
    return level;
}

// The key by which a device says that it is dml_tile's null device, with a UINT of 1 as its private data.
inline const GUID& null_device_key() noexcept
{
    static const GUID key = {0x6C6D746C, 0x6C69, 0x4165, {0x6E, 0x75, 0x6C, 0x6C, 0x00, 0x00, 0x00, 0x00}};
    return key;
}

inline bool is_null_device(std::nullptr_t) noexcept { return false; }

template <class Device>
bool is_null_device(const Device& device) noexcept
{
    UINT is_null = 0, size = sizeof is_null;
    completes([&] {
        if (device && device->GetPrivateData(null_device_key(), &size, &is_null) < 0)
        {
            is_null = 0;
        }
    });
    return is_null == 1;
}

// Begins a line. Without an HRESULT, that is null.
inline Line& begin(Line& line, const HRESULT* hr) noexcept
{
    line.add("{\"dml_tile_capture\":1,\"hresult\":");
    return hr == nullptr ? line.add("null") : line.hexadecimal(static_cast<std::uint32_t>(*hr));
}

// Adds the device: its feature level, of which 0 is null, and whether it is dml_tile's null device.
inline Line& add_device(Line& line, std::uint32_t level, bool is_null) noexcept
{
    line.add(",\"feature_level\":");
    return (level == 0 ? line.add("null") : line.hexadecimal(level)).add(is_null ? ",\"null_device\":true" : "");
}

// A file that is appended to: the system puts each write at the end of whatever others have written by then. Neither
// another's lock nor, except on Windows, a pipe that nobody reads stops it.
#if defined(_WIN32)

class AppendedFile
{
public:
    // FILE_APPEND_DATA without FILE_WRITE_DATA: the system itself puts each write at the end, so that no other is overwritten.
    explicit AppendedFile(const wchar_t* path) noexcept
        : file_(CreateFileW(
              path, FILE_APPEND_DATA | FILE_READ_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
              OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr))
    {
    }

    ~AppendedFile()
    {
        if (is_open())
        {
            CloseHandle(file_);
        }
    }

    AppendedFile(const AppendedFile&) = delete;
    AppendedFile& operator=(const AppendedFile&) = delete;

    bool is_open() const noexcept { return file_ != INVALID_HANDLE_VALUE; }

    // Whether the last byte is no end of a line, as where a process ended while it wrote.
    bool ends_within_a_line() const noexcept
    {
        LARGE_INTEGER back;
        back.QuadPart = -1;
        char last = '\n';
        DWORD count = 0;
        return SetFilePointerEx(file_, back, nullptr, FILE_END) != 0 &&
               ReadFile(file_, &last, 1, &count, nullptr) != 0 && count == 1 && last != '\n';
    }

    bool write(const char* text, std::size_t size) const noexcept
    {
        DWORD count = 0;
        return WriteFile(file_, text, static_cast<DWORD>(size), &count, nullptr) != 0 && count == size;
    }

private:
    HANDLE file_;
};

#else

class AppendedFile
{
public:
    explicit AppendedFile(const char* path) noexcept
        : file_(::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)),
          reading_(file_ < 0 ? -1 : ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
    {
    }

    ~AppendedFile()
    {
        for (const int each : {file_, reading_})
        {
            if (each >= 0)
            {
                ::close(each);
            }
        }
    }

    AppendedFile(const AppendedFile&) = delete;
    AppendedFile& operator=(const AppendedFile&) = delete;

    bool is_open() const noexcept { return file_ >= 0; }

    // Looked at again for a moment: a line that another is writing ends soon. A longer one gets a blank line behind it.
    bool ends_within_a_line() const noexcept
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

    bool write(const char* text, std::size_t size) const noexcept
    {
        ssize_t count = 0;
        do
        {
            count = ::write(file_, text, size);
        } while (count < 0 && errno == EINTR);
        return count >= 0 && static_cast<std::size_t>(count) == size;
    }

private:
    const int file_;
    const int reading_;  // the same file; of a pipe, an end that keeps writing from raising SIGPIPE
};

#endif

// Appends a line, after the end of the one before, in a single write.
inline bool append_to(const AppendedFile& file, Line& line) noexcept
{
    if (!file.is_open() || !line.add("\n").is_whole())
    {
        return false;
    }
    return file.ends_within_a_line() ? file.write(line.after_end_of_line(), line.size() + 1)
                                     : file.write(line.text(), line.size());
}

const std::size_t max_path = 4096;

#if defined(_WIN32)

inline bool append(const wchar_t* path, Line& line) noexcept { return path != nullptr && append_to(AppendedFile(path), line); }

inline bool append(const char* path, Line& line) noexcept
{
    wchar_t wide[max_path];
    return path != nullptr && MultiByteToWideChar(CP_ACP, 0, path, -1, wide, static_cast<int>(max_path)) != 0 &&
           append(wide, line);
}

#else

inline bool append(const char* path, Line& line) noexcept { return path != nullptr && append_to(AppendedFile(path), line); }

// The path in UTF-8, whatever the locale. The system refuses one that fills the array.
inline bool append(const wchar_t* path, Line& line) noexcept
{
    char narrow[max_path + 4];
    std::size_t size = 0;
    for (const wchar_t* at = path; at != nullptr && *at != L'\0' && size < max_path; ++at)
    {
        const auto code = static_cast<std::uint32_t>(*at);
        const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        const std::uint32_t mark = more == 0 ? 0 : (0xFF00u >> (more + 1)) & 0xFF;
        narrow[size++] = static_cast<char>(mark | (code >> (6 * more)));
        for (int i = more - 1; i >= 0; --i)
        {
            narrow[size++] = static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
        }
    }
    narrow[size] = '\0';
    return path != nullptr && append(narrow, line);
}

#endif

// Ways to give a line to `to`, the first that its type allows.
template <int Count>
struct Ways : Ways<Count - 1> {};

template <>
struct Ways<0> {};

template <class Path>
auto give(Path& to, Line& line, Ways<3>) noexcept -> decltype(append(to, line))
{
    return append(to, line);
}

template <class Path>
auto give(Path& to, Line& line, Ways<2>) noexcept -> decltype(append(to.c_str(), line))
{
    return append(to.c_str(), line);
}

template <class Sink>
auto give(Sink& to, Line& line, Ways<1>) noexcept -> decltype(static_cast<void>(to(line.text(), line.size())), true)
{
    return line.is_whole() && completes([&to, &line] { to(line.text(), line.size()); });
}

template <class To>
bool give(To&, Line&, Ways<0>) noexcept
{
    static_assert(
        sizeof(To) == 0, "dml_tile::capture takes the name of a file, as const char*, const wchar_t* or an object with "
                         "c_str(), or a function that takes (const char* line, std::size_t length)");
    return false;
}

template <class To>
bool give_to(
    To& to, const DML_OPERATOR_DESC* desc, const HRESULT* hr, std::uint32_t level = 0, bool is_null = false) noexcept
{
    Line line;
    add_device(begin(line, is_null ? nullptr : hr), level, is_null).add(",\"operator\":");
    add_operator(line, desc, max_depth);
    line.add("}");
    return give(to, line, Ways<3>());
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
    return detail::give_to(to, desc, &hr, detail::level_of(device), detail::is_null_device(device));
}

template <class To, class Device = std::nullptr_t>
bool capture(To&& to, const DML_OPERATOR_DESC& desc, HRESULT hr, const Device& device = nullptr) noexcept
{
    return detail::give_to(to, &desc, &hr, detail::level_of(device), detail::is_null_device(device));
}

// The same without a call of CreateOperator, as in tests on a machine without DirectML: `check` judges the descriptor,
// and has no HRESULT to compare with.
template <class To>
bool capture(To&& to, const DML_OPERATOR_DESC* desc) noexcept
{
    return detail::give_to(to, desc, nullptr);
}

template <class To>
bool capture(To&& to, const DML_OPERATOR_DESC& desc) noexcept
{
    return detail::give_to(to, &desc, nullptr);
}

}  // inline namespace
}  // namespace dml_tile

#endif  // DML_TILE_CAPTURE_H
