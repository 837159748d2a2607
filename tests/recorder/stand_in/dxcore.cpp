// Stands in for libdxcore.so: one adapter, which DirectML finds by the device's LUID.
#define INITGUID
#include <wsl/winadapter.h>
#include <directx/dxcore.h>

#include <cstring>

#include "neutral_dxcore.h"

namespace {

struct Adapter : NeutralAdapter {
    bool STDMETHODCALLTYPE IsValid() override { return true; }
    bool STDMETHODCALLTYPE IsPropertySupported(DXCoreAdapterProperty) override { return true; }

    HRESULT STDMETHODCALLTYPE GetPropertySize(DXCoreAdapterProperty, size_t* size) override {
        *size = sizeof description;
        return S_OK;
    }

    HRESULT STDMETHODCALLTYPE GetProperty(DXCoreAdapterProperty property, size_t size, void* data) override {
        memset(data, 0, size);
        if (property == DXCoreAdapterProperty::DriverDescription) memcpy(data, description, sizeof description);
        return S_OK;
    }

private:
    static constexpr char description[] = "Stand-in";
};

struct Factory : NeutralFactory {
    HRESULT STDMETHODCALLTYPE GetAdapterByLuid(const LUID&, REFIID id, void** result) override {
        static Adapter adapter;
        return adapter.QueryInterface(id, result);
    }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) HRESULT DXCoreCreateAdapterFactory(REFIID id, void** result) {
    static Factory factory;
    return factory.QueryInterface(id, result);
}
