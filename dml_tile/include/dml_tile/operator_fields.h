// dml_tile/operator_fields.h: the fields of each operator's struct, as DirectML.h has them. `python -m docs.generate`
// writes it, from dml_tile/directml/header.txt; dml_tile/directml/operators.py says how to read the strings.
#ifndef DML_TILE_OPERATOR_FIELDS_H
#define DML_TILE_OPERATOR_FIELDS_H

#include <cstdint>

namespace dml_tile_fields
{

// The fields of an operator; null for a type that DirectML.h of 6_4 does not have.
inline const char* of_operator(std::uint32_t type) noexcept
{
    static const char* const strings[] = {
        "t InputTensor, t OutputTensor, s? ScaleBias", "t ATensor, t BTensor, t OutputTensor", "t InputTensor, t OutputTensor, s? ScaleBias, f Min, f Max", "t InputTensor, t OutputTensor",
        "t InputTensor, t ExponentTensor, t OutputTensor, s? ScaleBias", "t InputTensor, t OutputTensor, s? ScaleBias, f Exponent", "t InputTensor, t OutputTensor, s? ScaleBias, f Min",
        "t InputTensor, t ScaleTensor, t? ZeroPointTensor, t OutputTensor", "t InputTensor, t OutputTensor, f Alpha", "t InputTensor, t OutputTensor, f Alpha, f Beta",
        "t InputTensor, t SlopeTensor, t OutputTensor", "t InputTensor, t OutputTensor, f Alpha, f Gamma", "t InputTensor, t OutputTensor, f Steepness",
        "t InputTensor, t FilterTensor, t? BiasTensor, t OutputTensor, e Mode:CONVOLUTION_MODE, e Direction:CONVOLUTION_DIRECTION, u DimensionCount, U6 Strides, U6 Dilations, U6 StartPadding, U6 EndPadding, U6 OutputPadding, u GroupCount, o? FusedActivation",
        "t ATensor, t BTensor, t? CTensor, t OutputTensor, e TransA:MATRIX_TRANSFORM, e TransB:MATRIX_TRANSFORM, f Alpha, f Beta, o? FusedActivation",
        "e Function:REDUCE_FUNCTION, t InputTensor, t OutputTensor, u AxisCount, U3 Axes",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding, b IncludePadding",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding, u P",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding", "t InputTensor, t ROITensor, t OutputTensor, f SpatialScale, z PooledSize",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Offsets, U2 Sizes, U2 Strides", "t InputTensor, u OutputCount, T1 OutputTensors, u Axis", "u InputCount, T0 InputTensors, t OutputTensor, u Axis",
        "t InputTensor, t OutputTensor, e PaddingMode:PADDING_MODE, f PaddingValue, u DimensionCount, U4 StartPadding, U4 EndPadding", "t InputTensor, t OutputTensor, f Scale, u ChannelCount, F3 Bias",
        "t InputTensor, t OutputTensor, z ScaleSize, e InterpolationMode:INTERPOLATION_MODE", "t InputTensor, t IndicesTensor, t OutputTensor, u Axis, u IndexDimensions",
        "t InputTensor, t OutputTensor, u BlockSize", "t InputTensor, t OutputTensor, u RepeatsCount, U2 Repeats", "t InputTensor, t OutputValueTensor, t OutputIndexTensor, u Axis, u K",
        "t InputTensor, t MeanTensor, t VarianceTensor, t ScaleTensor, t BiasTensor, t OutputTensor, b Spatial, f Epsilon, o? FusedActivation",
        "t InputTensor, t? ScaleTensor, t? BiasTensor, t OutputTensor, b CrossChannel, b NormalizeVariance, f Epsilon, o? FusedActivation",
        "t InputTensor, t OutputTensor, b CrossChannel, u LocalSize, f Alpha, f Beta, f Bias", "t InputTensor, t OutputTensor, u Axis, f Epsilon, u P",
        "t InputTensor, t WeightTensor, t RecurrenceTensor, t? BiasTensor, t? HiddenInitTensor, t? SequenceLengthsTensor, t? OutputSequenceTensor, t? OutputSingleTensor, u ActivationDescCount, O8 ActivationDescs, e Direction:RECURRENT_NETWORK_DIRECTION",
        "t InputTensor, t WeightTensor, t RecurrenceTensor, t? BiasTensor, t? HiddenInitTensor, t? CellMemInitTensor, t? SequenceLengthsTensor, t? PeepholeTensor, t? OutputSequenceTensor, t? OutputSingleTensor, t? OutputCellSingleTensor, u ActivationDescCount, O11 ActivationDescs, e Direction:RECURRENT_NETWORK_DIRECTION, f ClipThreshold, b UseClipThreshold, b CoupleInputForget",
        "t InputTensor, t WeightTensor, t RecurrenceTensor, t? BiasTensor, t? HiddenInitTensor, t? SequenceLengthsTensor, t? OutputSequenceTensor, t? OutputSingleTensor, u ActivationDescCount, O8 ActivationDescs, e Direction:RECURRENT_NETWORK_DIRECTION, b LinearBeforeReset",
        "t ConditionTensor, t ATensor, t BTensor, t OutputTensor", "t ATensor, t BTensor, t OutputTensor, o? FusedActivation", "t InputTensor, t OutputTensor, f Bias, f Threshold",
        "t InputTensor, t OutputTensor, t? OutputIndicesTensor, u DimensionCount, U3 Strides, U3 WindowSize, U3 StartPadding, U3 EndPadding", "t InputTensor, t IndicesTensor, t OutputTensor",
        "t OutputTensor, i Offset, f Value", "t InputTensor, t IndicesTensor, t UpdatesTensor, t OutputTensor, u Axis", "t IndicesTensor, t ValuesTensor, t OutputTensor, u Axis",
        "t InputTensor, t OutputTensor, e InterpolationMode:INTERPOLATION_MODE, u ScaleCount, F3 Scales", "t InputTensor, t OutputTensor, e RoundingMode:ROUNDING_MODE",
        "t InputTensor, t OutputTensor, e InfinityMode:IS_INFINITY_MODE", "t OutputTensor, e ValueDataType:TENSOR_DATA_TYPE, x Value",
        "t OutputTensor, e ValueDataType:TENSOR_DATA_TYPE, x ValueStart, x ValueDelta", "t InputTensor, t OutputTensor, u Axis, e AxisDirection:AXIS_DIRECTION, b HasExclusiveSum",
        "t InputTensor, t SequenceLengthsTensor, t OutputTensor, u Axis", "t InputTensor, t IndicesTensor, t OutputTensor, u Axis",
        "t InputTensor, t IndicesTensor, t OutputTensor, u InputDimensionCount, u IndicesDimensionCount",
        "t InputTensor, t IndicesTensor, t UpdatesTensor, t OutputTensor, u InputDimensionCount, u IndicesDimensionCount",
        "t InputTensor, t OutputTensor, t? OutputIndicesTensor, u DimensionCount, U3 Strides, U3 WindowSize, U3 StartPadding, U3 EndPadding, U3 Dilations",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 InputWindowOffsets, U2 InputWindowSizes, I2 InputWindowStrides",
        "t InputTensor, t OutputValueTensor, t OutputIndexTensor, u Axis, u K, e AxisDirection:AXIS_DIRECTION", "t InputTensor, t OutputTensor, u BlockSize, e Order:DEPTH_SPACE_ORDER",
        "t InputTensor, t? ScaleTensor, t? BiasTensor, t OutputTensor, u AxisCount, U4 Axes, b NormalizeVariance, f Epsilon, o? FusedActivation",
        "t InputTensor, t OutputTensor, e InterpolationMode:INTERPOLATION_MODE, u DimensionCount, F3 Scales, F3 InputPixelOffsets, F3 OutputPixelOffsets",
        "t ATensor, t? AZeroPointTensor, t BTensor, t? BZeroPointTensor, t OutputTensor",
        "t ATensor, t AScaleTensor, t? AZeroPointTensor, t BTensor, t BScaleTensor, t? BZeroPointTensor, t OutputScaleTensor, t? OutputZeroPointTensor, t OutputTensor",
        "t InputTensor, t? InputZeroPointTensor, t FilterTensor, t? FilterZeroPointTensor, t OutputTensor, u DimensionCount, U5 Strides, U5 Dilations, U5 StartPadding, U5 EndPadding, u GroupCount",
        "t InputTensor, t InputScaleTensor, t? InputZeroPointTensor, t FilterTensor, t FilterScaleTensor, t? FilterZeroPointTensor, t? BiasTensor, t OutputScaleTensor, t? OutputZeroPointTensor, t OutputTensor, u DimensionCount, U10 Strides, U10 Dilations, U10 StartPadding, U10 EndPadding, u GroupCount",
        "t InputTensor, t InputGradientTensor, t OutputGradientTensor",
        "t InputGradientTensor, t OutputGradientTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding, b IncludePadding",
        "t InputTensor, t InputGradientTensor, t OutputGradientTensor, u DimensionCount, U3 Strides, U3 WindowSize, U3 StartPadding, U3 EndPadding, U3 Dilations",
        "t InputStateTensor, t OutputTensor, t? OutputStateTensor, e Type:RANDOM_GENERATOR_TYPE", "t InputTensor, t OutputCountTensor, t OutputCoordinatesTensor",
        "t InputGradientTensor, t OutputGradientTensor, e InterpolationMode:INTERPOLATION_MODE, u DimensionCount, F3 Scales, F3 InputPixelOffsets, F3 OutputPixelOffsets",
        "t InputGradientTensor, t OutputGradientTensor, u DimensionCount, U2 InputWindowOffsets, U2 InputWindowSizes, I2 InputWindowStrides",
        "t InputParametersTensor, t InputFirstMomentTensor, t InputSecondMomentTensor, t GradientTensor, t TrainingStepTensor, t OutputParametersTensor, t OutputFirstMomentTensor, t OutputSecondMomentTensor, f LearningRate, f Beta1, f Beta2, f Epsilon",
        "t InputTensor, t OutputTensor, u AxisCount, U2 Axes, e AxisDirection:AXIS_DIRECTION",
        "t InputTensor, t ROITensor, t BatchIndicesTensor, t OutputTensor, e ReductionFunction:REDUCE_FUNCTION, e InterpolationMode:INTERPOLATION_MODE, f SpatialScaleX, f SpatialScaleY, f OutOfBoundsInputValue, u MinimumSamplesPerOutput, u MaximumSamplesPerOutput",
        "t InputTensor, t IndicesTensor, t OutputTensor, u InputDimensionCount, u IndicesDimensionCount, u BatchDimensionCount", "t InputTensor, t InputGradientTensor, t OutputGradientTensor, f Min, f Max",
        "t InputTensor, t InputGradientTensor, t OutputGradientTensor, b CrossChannel, u LocalSize, f Alpha, f Beta, f Bias",
        "t InputTensor, t OutputTensor, u Axis, e AxisDirection:AXIS_DIRECTION, b HasExclusiveProduct",
        "t InputTensor, t InputGradientTensor, t MeanTensor, t VarianceTensor, t ScaleTensor, t OutputGradientTensor, t OutputScaleGradientTensor, t OutputBiasGradientTensor, f Epsilon",
        "t InputTensor, t OutputTensor, t OutputScaleTensor, t OutputZeroPointTensor",
        "t InputTensor, t ROITensor, t BatchIndicesTensor, t OutputTensor, e ReductionFunction:REDUCE_FUNCTION, e InterpolationMode:INTERPOLATION_MODE, f SpatialScaleX, f SpatialScaleY, f InputPixelOffset, f OutputPixelOffset, f OutOfBoundsInputValue, u MinimumSamplesPerOutput, u MaximumSamplesPerOutput, b AlignRegionsToCorners",
        "t? InputTensor, t InputGradientTensor, t ROITensor, t BatchIndicesTensor, t? OutputGradientTensor, t? OutputROIGradientTensor, e ReductionFunction:REDUCE_FUNCTION, e InterpolationMode:INTERPOLATION_MODE, f SpatialScaleX, f SpatialScaleY, f InputPixelOffset, f OutputPixelOffset, u MinimumSamplesPerOutput, u MaximumSamplesPerOutput, b AlignRegionsToCorners",
        "t InputTensor, t ScaleTensor, t BiasTensor, t? FusedAddTensor, t OutputTensor, t OutputMeanTensor, t OutputVarianceTensor, f Epsilon, o? FusedActivation",
        "t InputTensor, t OutputTensor, s? ScaleBias, e MinMaxDataType:TENSOR_DATA_TYPE, x Min, x Max",
        "t InputTensor, t InputGradientTensor, t OutputGradientTensor, e MinMaxDataType:TENSOR_DATA_TYPE, x Min, x Max",
        "t InputTensor, t OutputTensor, e PaddingMode:PADDING_MODE, e PaddingValueDataType:TENSOR_DATA_TYPE, x PaddingValue, u DimensionCount, U5 StartPadding, U5 EndPadding",
        "t InputTensor, t OutputTensor, u AxisCount, U2 Axes",
        "t InputTensor, t OutputTensor, e InterpolationMode:INTERPOLATION_MODE, e RoundingDirection:AXIS_DIRECTION, u DimensionCount, F4 Scales, F4 InputPixelOffsets, F4 OutputPixelOffsets",
        "t InputGradientTensor, t OutputGradientTensor, e InterpolationMode:INTERPOLATION_MODE, e RoundingDirection:AXIS_DIRECTION, u DimensionCount, F4 Scales, F4 InputPixelOffsets, F4 OutputPixelOffsets",
        "t? InputTensor, t OutputTensor, e ValueDataType:TENSOR_DATA_TYPE, x Value, i DiagonalFillBegin, i DiagonalFillEnd",
        "t? QueryTensor, t? KeyTensor, t? ValueTensor, t? StackedQueryKeyTensor, t? StackedKeyValueTensor, t? StackedQueryKeyValueTensor, t? BiasTensor, t? MaskTensor, t? RelativePositionBiasTensor, t? PastKeyTensor, t? PastValueTensor, t OutputTensor, t? OutputPresentKeyTensor, t? OutputPresentValueTensor, f Scale, f MaskFilterValue, u HeadCount, e MaskType:MULTIHEAD_ATTENTION_MASK_TYPE",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding, U2 Dilations, u P",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 Strides, U2 WindowSize, U2 StartPadding, U2 EndPadding, U2 Dilations, b IncludePadding", "t InputTensor, t OutputTensor, f SigmoidInputScale",
        "t InputTensor, t InputScaleTensor, t? InputZeroPointTensor, t OutputScaleTensor, t? OutputZeroPointTensor, t OutputTensor, u DimensionCount, U6 Strides, U6 WindowSize, U6 StartPadding, U6 EndPadding, U6 Dilations, b IncludePadding",
        "t ATensor, t AScaleTensor, t? AZeroPointTensor, t BTensor, t BScaleTensor, t? BZeroPointTensor, t? BiasTensor, t OutputTensor",
        "t InputTensor, t? ScaleTensor, t? BiasTensor, t OutputTensor, u AxisCount, U4 Axes, b UseMean, b UseVariance, f Epsilon, o? FusedActivation",
        "t? QueryTensor, t? KeyTensor, t? ValueTensor, t? StackedQueryKeyTensor, t? StackedKeyValueTensor, t? StackedQueryKeyValueTensor, t? BiasTensor, t? MaskTensor, t? RelativePositionBiasTensor, t? PastKeyTensor, t? PastValueTensor, t? PastSequenceLengthsTensor, t OutputTensor, t? OutputPresentKeyTensor, t? OutputPresentValueTensor, f Scale, f MaskFilterValue, u QueryHeadCount, u KeyValueHeadCount, e MaskType:MULTIHEAD_ATTENTION_MASK_TYPE",
        "t InputTensor, e QuantizationType:QUANTIZATION_TYPE, u QuantizationTensorCount, T2 QuantizationTensors, t OutputTensor",
        "t InputTensor, t OutputTensor, e InterpolationMode:INTERPOLATION_MODE, e RoundingDirection:AXIS_DIRECTION, u DimensionCount, F4 Scales, F4 InputPixelOffsets, F4 OutputPixelOffsets, b Antialiased",
        "t InputTensor, t OutputTensor, u DimensionCount, U2 WindowSizes, U2 Strides, U2 Dilations, U2 StartPadding, U2 EndPadding",
    };
    static const unsigned char numbers[] = {  // of the strings, by type
        0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 4, 5, 0, 0, 0, 1, 0, 6, 7, 7, 8, 3,
        9, 3, 8, 9, 3, 10, 9, 3, 11, 9, 3, 3, 12, 3, 3, 8, 13, 14, 15, 16, 17, 18, 19, 20, 3, 21, 22, 23, 24, 25, 26,
        27, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 3, 3, 0, 0, 0, 0, 0, 0, 0, 37, 38, 39, 40, 41, 42, 43, 44, 45, 1, 1,
        46, 47, 1, 1, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 58, 59, 60, 61, 62, 63, 64, 1, 1, 1, 3, 3, 1, 1, 8,
        65, 66, 67, 68, 69, 70, 71, 72, 73, 73, 74, 75, 1, 76, 1, 77, 78, 79, 62, 80, 81, 82, 83, 79, 84, 85, 86, 3, 3,
        87, 87, 87, 88, 89, 90, 91, 92, 93, 94, 9, 95, 96, 97, 98, 99, 99, 100, 101, 101
    };
    return type < sizeof numbers && type != 0 ? strings[numbers[type]] : nullptr;
}

}  // namespace dml_tile_fields

#endif  // DML_TILE_OPERATOR_FIELDS_H
