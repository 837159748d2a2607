// A tile of halves, as an application builds it: with a helper that forgets that sizes are rounded up to 4 bytes.
#pragma once

#include <DirectML.h>

#include <cstddef>

inline UINT64 tensor_size(UINT64 elements, UINT64 element_size)
{
    return elements * element_size;
}

class HalvesTwice
{
public:
    explicit HalvesTwice(UINT halves)
        : sizes_{1, 1, 1, halves}, tiled_{1, 1, 2, halves}, repeats_{1, 1, 2, 1},
          buffers_{
              {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_NONE, 4, sizes_, nullptr, tensor_size(halves, 2), 0},
              {DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_FLAG_NONE, 4, tiled_, nullptr, tensor_size(2 * halves, 2), 0}},
          input_{DML_TENSOR_TYPE_BUFFER, &buffers_[0]}, output_{DML_TENSOR_TYPE_BUFFER, &buffers_[1]},
          tile_{&input_, &output_, 4, repeats_}, desc_{DML_OPERATOR_TILE, &tile_}
    {
    }

    HalvesTwice(const HalvesTwice&) = delete;
    HalvesTwice& operator=(const HalvesTwice&) = delete;

    const DML_OPERATOR_DESC& desc() const { return desc_; }

private:
    UINT sizes_[4], tiled_[4], repeats_[4];
    DML_BUFFER_TENSOR_DESC buffers_[2];
    DML_TENSOR_DESC input_, output_;
    DML_TILE_OPERATOR_DESC tile_;
    DML_OPERATOR_DESC desc_;
};
