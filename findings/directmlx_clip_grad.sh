#!/usr/bin/env bash
# DirectMLX.h as PyPI's directml 0.1.0 ships it; microsoft/DirectML's newest has the same function.
# Behaviour: dml::ClipGrad describes an operator of two inputs, and gives its node one, so that no edge leads to
#   InputGradientTensor. dml::ActivationParameterizedRelu gives its node both of its inputs.
# One would have guessed: each expression that a function takes feeds the node that it makes.
# Concerns: whoever clips gradients with DirectMLX, and reads E_INVALIDARG where the graph is compiled.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary directml directml==0.1.0
tar xzf directml-0.1.0.tar.gz
for function in ClipGrad ActivationParameterizedRelu; do
    sed -n "/^    inline Expression $function(/,/^    }/p" directml-0.1.0/third_party/DirectMLX.h
done >functions.h
# what the two functions use, of which the node counts its inputs
cat >seen.cpp <<'CPP'
#include <cassert>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

struct DML_TENSOR_DESC {};
struct DML_ELEMENT_WISE_CLIP_GRAD_OPERATOR_DESC
{
    const DML_TENSOR_DESC *InputTensor, *InputGradientTensor, *OutputGradientTensor;
    float Min, Max;
};
struct DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC
{
    const DML_TENSOR_DESC *InputTensor, *SlopeTensor, *OutputTensor;
};
enum DML_OPERATOR_TYPE { DML_OPERATOR_ELEMENT_WISE_CLIP_GRAD, DML_OPERATOR_ACTIVATION_PARAMETERIZED_RELU };

struct TensorDesc
{
    int dataType = 0;
    std::vector<unsigned> sizes;
    DML_TENSOR_DESC desc;
    TensorDesc() = default;
    TensorDesc(int, std::vector<unsigned>, int) {}
    template <class Desc> const Desc* AsPtr() const { return &desc; }
};

namespace detail
{
struct NodeID {};
struct GraphBuilder;
struct NodeOutput
{
    GraphBuilder* builder;
    GraphBuilder* GetGraphBuilder() { return builder; }
    TensorDesc GetOutputDesc() { return {}; }
};
struct GraphBuilder
{
    NodeOutput output = {this};
    std::size_t inputs = 0;
    int GetTensorPolicy() { return 0; }
    template <std::size_t Count> NodeID CreateOperatorNode(DML_OPERATOR_TYPE, const void*, NodeOutput* const (&)[Count])
    {
        inputs = Count;
        return {};
    }
    NodeOutput* CreateNodeOutput(NodeID, unsigned, TensorDesc&&) { return &output; }
};
}  // namespace detail

struct Expression
{
    detail::NodeOutput* output;
    Expression(detail::NodeOutput* made) : output(made) {}
    detail::NodeOutput* Impl() { return output; }
};

#include "functions.h"

int main()
{
    detail::GraphBuilder graph;
    Expression one = &graph.output, other = &graph.output;
    ActivationParameterizedRelu(one, other);
    const auto relu = graph.inputs;
    ClipGrad(one, other, 0, 1);
    std::printf("ActivationParameterizedRelu: %zu inputs of 2\nClipGrad: %zu input of 2\n", relu, graph.inputs);
    return relu == 2 && graph.inputs == 1 ? 0 : 1;
}
CPP
"${CXX:-c++}" -std=c++17 -DNDEBUG seen.cpp -o seen
./seen
