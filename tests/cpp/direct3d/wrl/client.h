// A stand-in for WRL's ComPtr, of which objects live as long as the program.
#pragma once

namespace Microsoft
{
namespace WRL
{

template <class T>
class ComPtr
{
public:
    ComPtr() = default;
    ComPtr(T* held) : held_(held) {}
    T* Get() const { return held_; }
    T** GetAddressOf() { return &held_; }
    T* operator->() const { return held_; }
    explicit operator bool() const { return held_ != nullptr; }

private:
    T* held_ = nullptr;
};

}  // namespace WRL
}  // namespace Microsoft
