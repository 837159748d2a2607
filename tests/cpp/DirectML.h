// A stand-in for DirectML.h, as far as the tests in C++ need it: names, values and order as Microsoft's reference pages
// document them (https://learn.microsoft.com/en-us/windows/win32/api/directml/); no text of the header.
#ifndef DML_TILE_TESTS_DIRECTML_H
#define DML_TILE_TESTS_DIRECTML_H

#include "../data/DirectML_stand_in.h"

#define DML_TARGET_VERSION 0x6400

typedef int32_t HRESULT;

enum DML_FEATURE_LEVEL { DML_FEATURE_LEVEL_1_0 = 0x1000, DML_FEATURE_LEVEL_6_4 = 0x6400 };

enum DML_FEATURE { DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, DML_FEATURE_FEATURE_LEVELS };

struct DML_FEATURE_QUERY_FEATURE_LEVELS
{
    UINT RequestedFeatureLevelCount;
    const DML_FEATURE_LEVEL* RequestedFeatureLevels;
};

struct DML_FEATURE_DATA_FEATURE_LEVELS
{
    DML_FEATURE_LEVEL MaxSupportedFeatureLevel;
};

#endif
