// Captures a descriptor to each kind of destination: `destinations FOLDER`.
#include <dml_tile/capture.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#if __cplusplus >= 201703L
#include <filesystem>
#endif

static std::string given;

static void keep(const char* line, std::size_t length) { given.assign(line, length); }

static bool writes_each(const std::string& folder, const DML_OPERATOR_DESC& desc)
{
    std::string at = folder + "/lines.jsonl";
    std::wstring wide(at.begin(), at.end());
    char narrow[4096] = {};
    std::memcpy(narrow, at.c_str(), at.size());
    const std::string constant = at;
    int calls = 0;
    bool done = dml_tile::capture(at.c_str(), desc) && dml_tile::capture(at, &desc) &&
                dml_tile::capture(constant, desc, 0) && dml_tile::capture(wide, desc) &&
                dml_tile::capture(wide.c_str(), desc) && dml_tile::capture(narrow, desc, 1, nullptr) &&
                dml_tile::capture(folder + "/lines.jsonl", desc) && dml_tile::capture(keep, nullptr) &&
                dml_tile::capture([calls](const char*, std::size_t) mutable { ++calls; }, desc);
#if __cplusplus >= 201703L
    done = done && dml_tile::capture(std::filesystem::path(at), desc);
#else
    done = done && dml_tile::capture(at, desc);
#endif
    return done && given == "{\"dml_tile_capture\":1,\"hresult\":null,\"feature_level\":null,\"operator\":null}";
}

// As where a process ended while it wrote: the next line begins on its own.
static bool heals_a_torn_line(const std::string& folder, const DML_OPERATOR_DESC& desc)
{
    const std::string at = folder + "/torn.jsonl";
    std::FILE* file = std::fopen(at.c_str(), "ab");
    std::fputs("{\"dml_tile_capture\":1,\"hres", file);
    std::fclose(file);
    return dml_tile::capture(at, desc, 0) && dml_tile::capture(at, desc, 0);
}

static bool fails_where_there_is_no_file(const std::string& folder, const DML_OPERATOR_DESC& desc)
{
    const std::wstring wide(folder.begin(), folder.end());
    return !dml_tile::capture(static_cast<const char*>(nullptr), desc) &&
           !dml_tile::capture(static_cast<const wchar_t*>(nullptr), desc) && !dml_tile::capture(folder, desc) &&
           !dml_tile::capture(wide + std::wstring(5000, L'\u00FC'), desc) && !dml_tile::capture("", desc);
}

int main(int count, char** arguments)
{
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, nullptr};
    const std::string folder = count == 2 ? arguments[1] : ".";
    const bool done = writes_each(folder, desc) && heals_a_torn_line(folder, desc) &&
                      fails_where_there_is_no_file(folder, desc);
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
