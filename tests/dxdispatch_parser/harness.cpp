// Asks DxDispatch's own parser what it makes of models: a length and a text each on standard input, a line of JSON each
// on standard output. Built by this folder's __main__.py, which also takes the two .inc files out of Microsoft's sources.
#include "pch.h"
#include "StdSupport.h"
#include "JsonParsers.h"
#include "ImageReaderWriter.h"
#include "NpyReaderWriter.h"

#include <cmath>
#include <cstdio>

#include "calc_size.inc"

std::vector<std::byte> ReadTensorFromImage(const std::filesystem::path&, const ImageTensorInfo&)
{
    throw std::invalid_argument("no image is read here");
}

void ReadNpy(std::span<const std::byte>, DML_TENSOR_DATA_TYPE&, std::vector<uint32_t>&, std::vector<std::byte>&)
{
    throw std::invalid_argument("no array is read here");
}

struct Device
{
    static uint32_t GetSizeInBytes(DML_TENSOR_DATA_TYPE type)
    {
        static const uint32_t sizes[] = {0, 4, 2, 4, 2, 1, 4, 2, 1, 8, 8, 8};
        return sizes[type];
    }
};

#include "print.inc"

static std::string Hex(const std::vector<std::byte>& bytes)
{
    std::string text;
    for (auto byte : bytes) { text += fmt::format("{:02x}", static_cast<unsigned>(byte)); }
    return text;
}

static std::string Quoted(const std::string& text)
{
    std::string quoted = "\"";
    for (unsigned char c : text)
    {
        if (c == '"' || c == '\\') { quoted += '\\'; quoted += static_cast<char>(c); }
        else if (c < 0x20 || c > 0x7e) { quoted += fmt::format("\\u{:04x}", c); }
        else { quoted += static_cast<char>(c); }
    }
    return quoted + "\"";
}

static std::string Array(const UINT* values, size_t count)
{
    if (!values) { return "null"; }
    std::string text = "[";
    for (size_t i = 0; i < count; i++) { text += (i ? "," : "") + std::to_string(values[i]); }
    return text + "]";
}

static size_t LengthOf(const rapidjson::Value& object, const char* name)
{
    auto member = object.FindMember(name);
    return member != object.MemberEnd() && member->value.IsArray() ? member->value.Size() : 0;
}

static const rapidjson::Value& Within(const rapidjson::Value& object, std::initializer_list<const char*> names)
{
    for (auto name : names)
    {
        auto member = object.FindMember(name);
        if (member != object.MemberEnd()) { return member->value; }
    }
    return object;
}

static std::string Tensor(const DML_TENSOR_DESC& tensor, const rapidjson::Value& source)
{
    auto& buffer = *static_cast<const DML_BUFFER_TENSOR_DESC*>(tensor.Desc);
    auto& fields = Within(source, {"Desc"});
    return fmt::format("[{},{},{},{},{},{},{},{}]",
        static_cast<int>(tensor.Type), static_cast<int>(buffer.DataType), static_cast<unsigned>(buffer.Flags),
        buffer.DimensionCount, Array(buffer.Sizes, LengthOf(fields, "Sizes")),
        Array(buffer.Strides, LengthOf(fields, "Strides")), buffer.TotalTensorSizeInBytes,
        buffer.GuaranteedBaseOffsetAlignment);
}

static std::string Resource(const Model::BufferDesc& buffer)
{
    std::string shown = "null", verbose = "null";
    if (!buffer.useDeferredBinding && buffer.initialValuesDataType != DML_TENSOR_DATA_TYPE_UNKNOWN)
    {
        auto unpadded = buffer;
        unpadded.sizeInBytes = unpadded.initialValues.size();
        shown = Quoted(ToString(unpadded.initialValues, unpadded, false));
        verbose = Quoted(ToString(unpadded.initialValues, unpadded, true));
    }
    return fmt::format("[{},{},{},{},{},{},{}]", static_cast<int>(buffer.initialValuesDataType),
        buffer.useDeferredBinding ? "true" : "false", buffer.sizeInBytes, buffer.initialValuesOffsetInBytes,
        Quoted(Hex(buffer.initialValues)), shown, verbose);
}

static std::string Dispatchable(const Model::DispatchableDesc& dispatchable, const rapidjson::Value& source)
{
    auto desc = std::get_if<Model::DmlDispatchableDesc>(&dispatchable.value);
    if (!desc || desc->desc->Type != DML_OPERATOR_TILE) { return "null"; }
    auto& tile = *static_cast<const DML_TILE_OPERATOR_DESC*>(desc->desc->Desc);
    auto& fields = Within(source, {"Desc", "desc"});
    std::map<std::string, size_t> points;
    for (auto& point : desc->initBindings) { points[point.first]; }
    std::string names;
    for (auto& point : points) { names += (names.empty() ? "" : ",") + Quoted(point.first); }
    return fmt::format("[{},{},{},{},{},{},[{}]]", Tensor(*tile.InputTensor, fields["InputTensor"]),
        Tensor(*tile.OutputTensor, fields["OutputTensor"]), tile.RepeatsCount,
        Array(tile.Repeats, LengthOf(fields, "Repeats")), static_cast<unsigned>(desc->executionFlags),
        static_cast<int>(desc->compileType), names);
}

static std::string Answer(std::string text)
{
    std::string document = text;
    document.push_back('\0');
    rapidjson::Document doc;
    constexpr rapidjson::ParseFlag flags = rapidjson::ParseFlag(
        rapidjson::kParseFullPrecisionFlag | rapidjson::kParseCommentsFlag | rapidjson::kParseTrailingCommasFlag |
        rapidjson::kParseStopWhenDoneFlag);
    doc.ParseInsitu<flags>(document.data());
    try
    {
        if (!doc.HasParseError() && !doc.IsObject()) { throw std::invalid_argument("no object: not defined there"); }
        auto model = JsonParsers::ParseModel(doc, text, ".", ".");
        std::string resources, dispatchables;
        for (auto& each : model.GetResourceDescs())
        {
            resources += (resources.empty() ? "" : ",") + Quoted(each.name) + ":";
            resources += Resource(std::get<Model::BufferDesc>(each.value));
        }
        for (auto& each : model.GetDispatchableDescs())
        {
            dispatchables += (dispatchables.empty() ? "" : ",") + Quoted(each.name) + ":";
            dispatchables += Dispatchable(each, doc["dispatchables"][each.name.c_str()]);
        }
        return fmt::format("{{\"resources\":{{{}}},\"dispatchables\":{{{}}},\"commands\":{}}}", resources,
            dispatchables, model.GetCommands().size());
    }
    catch (const std::exception& error)
    {
        return "{\"refused\":" + Quoted(error.what()) + "}";
    }
}

int main()
{
    for (std::string length; std::getline(std::cin, length);)
    {
        std::string text(std::stoul(length), '\0');
        std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
        std::cin.get();
        std::cout << Answer(text) << std::endl;
    }
}
