// Each use of the headers, to be compiled with the stand-in for DirectML.h and with the real one.
#include <dml_tile/capture.h>
#include <dml_tile/capturing_device.h>
#include <dml_tile/null_device.h>

#include <string>

template <class Interface>
struct Pointer  // as ComPtr is one
{
    Interface* held;
    Interface* operator->() const { return held; }
    explicit operator bool() const { return held != nullptr; }
};

bool use(const DML_OPERATOR_DESC& desc, HRESULT hr, IDMLDevice* device, const Pointer<IDMLDevice>& smart);

bool use(const DML_OPERATOR_DESC& desc, HRESULT hr, IDMLDevice* device, const Pointer<IDMLDevice>& smart)
{
    int lines = 0;
    const auto count = [&lines](const char*, std::size_t) { ++lines; };
    const std::string name = "tiles.jsonl";
    return dml_tile::capture("tiles.jsonl", desc, hr, device) && dml_tile::capture("tiles.jsonl", &desc, hr, smart) &&
           dml_tile::capture(L"tiles.jsonl", desc, hr) && dml_tile::capture(name, desc, hr, nullptr) &&
           dml_tile::capture(name, desc) && dml_tile::capture(count, &desc) &&
           dml_tile::capture(count, desc, hr, device) && dml_tile::capture(count, nullptr, hr) && lines == 3;
}

HRESULT make(IDMLDevice* device, const GUID& id, void** made);

HRESULT make(IDMLDevice* device, const GUID& id, void** made)
{
    const HRESULT hr = dml_tile::CreateCapturingDevice(device, "tiles.jsonl", id, made);
    return hr < 0 ? hr : dml_tile::CreateCapturingDevice(device, L"tiles.jsonl", id, made);
}

HRESULT make_without_directml(const GUID& id, void** made);

HRESULT make_without_directml(const GUID& id, void** made)
{
    const HRESULT hr = dml_tile::CreateNullDevice(id, made);
    return hr < 0 ? hr : dml_tile::CreateNullDevice(id, made, 0x2000);
}
