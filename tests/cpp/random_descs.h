// Random descriptors: every field may be wrong, arrays are as long as their counts, and behind counts above 8 there is
// no memory.
#ifndef DML_TILE_TESTS_RANDOM_DESCS_H
#define DML_TILE_TESTS_RANDOM_DESCS_H

#if defined(DML_TILE_REAL_HEADER) && !defined(_WIN32)
#include <wsl/winadapter.h>
#endif
#include <DirectML.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

class RandomDesc
{
public:
    explicit RandomDesc(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1), is_null_(below(200) == 0)
    {
        tensors_[0] = tensor(0);
        tensors_[1] = tensor(1);
        std::memset(&tile_, 0, sizeof tile_);
        tile_.InputTensor = below(20) ? &tensors_[0] : nullptr;
        tile_.OutputTensor = below(20) ? &tensors_[1] : nullptr;
        tile_.RepeatsCount = count();
        tile_.Repeats = array(tile_.RepeatsCount);
        std::memset(&desc_, 0, sizeof desc_);
        const std::uint32_t type = below(10) ? 70 : below(2) ? below(180) : bits();
        std::memcpy(&desc_.Type, &type, sizeof type);
        desc_.Desc = type == 70 && below(20) ? &tile_ : nullptr;
    }

    RandomDesc(const RandomDesc&) = delete;
    RandomDesc& operator=(const RandomDesc&) = delete;

    const DML_OPERATOR_DESC* get() const { return is_null_ ? nullptr : &desc_; }

private:
    std::uint32_t bits()
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>(state_ >> 16);
    }

    std::uint32_t below(std::uint32_t limit) { return bits() % limit; }

    std::uint32_t value() { return below(4) ? below(8) : bits(); }

    UINT count() { return below(6) ? below(9) : below(2) ? 9 + below(3) : bits() | 0x100; }

    const UINT* array(UINT count)
    {
        if (below(12) == 0) { return nullptr; }
        if (count > 8) { return reinterpret_cast<const UINT*>(std::uintptr_t(16)); }
        arrays_.emplace_back(new UINT[count]);
        for (UINT i = 0; i < count; ++i) { arrays_.back()[i] = value(); }
        return arrays_.back().get();
    }

    DML_TENSOR_DESC tensor(int i)
    {
        DML_BUFFER_TENSOR_DESC& buffer = buffers_[i];
        std::memset(&buffer, 0, sizeof buffer);
        const std::uint32_t data_type = value(), flags = value(), type = below(10) ? 1 : below(3) ? value() : 0;
        std::memcpy(&buffer.DataType, &data_type, sizeof data_type);
        std::memcpy(&buffer.Flags, &flags, sizeof flags);
        buffer.DimensionCount = count();
        buffer.Sizes = array(buffer.DimensionCount);
        buffer.Strides = below(2) ? array(buffer.DimensionCount) : nullptr;
        buffer.TotalTensorSizeInBytes = std::uint64_t(value()) << (below(3) ? 2 : 32);
        buffer.GuaranteedBaseOffsetAlignment = below(3) ? 0 : value();
        DML_TENSOR_DESC made;
        std::memset(&made, 0, sizeof made);
        std::memcpy(&made.Type, &type, sizeof type);
        made.Desc = type > 1 ? reinterpret_cast<const void*>(std::uintptr_t(24)) : below(20) ? &buffer : nullptr;
        return made;
    }

    std::uint64_t state_;
    bool is_null_;
    std::vector<std::unique_ptr<UINT[]>> arrays_;
    DML_BUFFER_TENSOR_DESC buffers_[2];
    DML_TENSOR_DESC tensors_[2];
    DML_TILE_OPERATOR_DESC tile_;
    DML_OPERATOR_DESC desc_;
};

#endif
