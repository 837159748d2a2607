// One part of a program whose parts are compiled with different DML_TARGET_VERSIONs. Each makes a capturing device of its
// own; `newer` has the device behind both, and returns normally if each does what its version has.
#include <dml_tile/capturing_device.h>

void older(IDMLDevice* device, const GUID& id, const char* path);
void newer(const char* path);

#if DML_TARGET_VERSION < 0x2100

void older(IDMLDevice* device, const GUID& id, const char* path)
{
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, nullptr};
    void* made = nullptr;
    if (dml_tile::CreateCapturingDevice(device, path, id, &made) == 0)
    {
        static_cast<IDMLDevice*>(made)->CreateOperator(&desc, id, nullptr);
        static_cast<IDMLDevice*>(made)->Release();
    }
    dml_tile::capture(path, desc, 0, device);
}

#else

#include "stand_in_device.h"

void newer(const char* path)
{
    StandInDevice device;
    const DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, nullptr};
    void* made = nullptr;
    REQUIRE(dml_tile::CreateCapturingDevice(device.get(), path, ids::device1, &made) == 0);
    IDMLDevice1* const capturing = static_cast<IDMLDevice1*>(made);
    REQUIRE(capturing->CreateOperator(&desc, ids::nobodys, nullptr) == 0);
    older(device.get(), ids::device, path);
    REQUIRE(capturing->CompileGraph(nullptr, DML_EXECUTION_FLAG_NONE, ids::nobodys, nullptr) == 0);
    REQUIRE(device.calls.back().method == "CompileGraph");
    REQUIRE(dml_tile::capture(path, desc, 0, device.get()));
    REQUIRE(capturing->Release() == 0 && device.count() == 1);
    device.Release();
}

#endif
