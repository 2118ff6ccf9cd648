#include "tests/models/layer_cases.h"

namespace kumo {

std::vector<Shape> LayerCase::inputs() const {
  std::vector<Shape> shapes = {input};
  shapes.insert(shapes.end(), more.begin(), more.end());
  return shapes;
}

int64_t LayerCase::size() const {
  int64_t sum = 0;
  for (const Shape& shape : inputs()) sum += shape.size();
  return sum;
}

// A new layer gets a line here.
const std::vector<LayerCase>& LayerCases() {
  static const std::vector<LayerCase>& cases = *new std::vector<LayerCase>{
      {"FullyConnected", {7}, R"(name: "l" fully_connected { outputs: 5 })"},
      {"FullyConnectedOfImages", {2, 3, 3}, R"(name: "l" fully_connected { outputs: 33 })"},
      {"FullyConnectedNoBias", {4}, R"(name: "l" fully_connected { outputs: 3 no_bias: true })"},
      {"Convolution", {2, 6, 5}, R"(name: "l" convolution { outputs: 7 kernel: 3 })"},
      {"ConvolutionOneByOne", {3, 4, 4}, R"(name: "l" convolution { outputs: 2 kernel: 1 })"},
      {"ConvolutionPadded", {2, 5, 4}, R"(name: "l" convolution { outputs: 3 kernel: 3 pad: 1 })"},
      {"ConvolutionWidePadding",
       {1, 4, 4},
       R"(name: "l" convolution { outputs: 2 kernel: 3 pad: 2 })"},
      {"ConvolutionStrided",
       {2, 7, 6},
       R"(name: "l" convolution { outputs: 4 kernel: 3 stride: 2 pad: 1 })"},
      {"ConvolutionStridePastKernel",
       {1, 7, 7},
       R"(name: "l" convolution { outputs: 2 kernel: 2 stride: 3 })"},
      {"ConvolutionDilated",
       {2, 7, 7},
       R"(name: "l" convolution { outputs: 3 kernel: 3 dilation: 2 pad: 2 })"},
      {"ConvolutionTall",
       {2, 6, 5},
       R"(name: "l" convolution { outputs: 3 kernel_height: 3 kernel_width: 2 no_bias: true })"},
      {"ConvolutionManyChannels", {13, 3, 3}, R"(name: "l" convolution { outputs: 17 kernel: 2 })"},
      {"ConvolutionOfTwoGroups",
       {4, 6, 5},
       R"(name: "l" convolution { outputs: 6 kernel: 3 groups: 2 })"},
      {"ConvolutionOfThreeGroupsStridedAndDilated",
       {9, 7, 6},
       R"(name: "l" convolution { outputs: 3 kernel: 2 groups: 3 stride: 2 pad: 1 dilation: 2 })"},
      {"ConvolutionDepthwise",
       {5, 5, 4},
       R"(name: "l" convolution { outputs: 5 kernel: 3 pad: 1 groups: 5 no_bias: true })"},
      {"ConvolutionDepthwiseWithTwoFiltersEach",
       {7, 4, 4},
       R"(name: "l" convolution { outputs: 14 kernel_height: 3 kernel_width: 1 groups: 7 })"},
      {"MaxPooling", {3, 6, 4}, R"(name: "l" max_pooling { kernel: 2 })"},
      {"MaxPoolingOverlapping",
       {2, 7, 6},
       R"(name: "l" max_pooling { kernel: 3 stride: 2 pad: 1 })"},
      {"MaxPoolingWithRest", {2, 5, 5}, R"(name: "l" max_pooling { kernel: 2 })"},
      {"AveragePooling", {3, 6, 4}, R"(name: "l" average_pooling { kernel: 2 })"},
      {"AveragePoolingOverlapping",
       {2, 7, 6},
       R"(name: "l" average_pooling { kernel: 3 stride: 2 pad: 1 })"},
      {"MaxPoolingCeil",
       {2, 6, 7},
       R"(name: "l" max_pooling { kernel: 3 stride: 2 ceil_mode: true })"},
      {"MaxPoolingCeilPadded",
       {2, 5, 8},
       R"(name: "l" max_pooling { kernel: 3 stride: 2 pad: 1 ceil_mode: true })"},
      {"MaxPoolingCeilStridePastKernel",
       {1, 6, 5},
       R"(name: "l" max_pooling { kernel: 2 stride: 3 pad: 1 ceil_mode: true })"},
      {"MaxPoolingCeilLargerThanTheInput",
       {3, 2, 3},
       R"(name: "l" max_pooling { kernel: 3 stride: 2 ceil_mode: true })"},
      {"MaxPoolingCeilWithoutRest",
       {2, 4, 6},
       R"(name: "l" max_pooling { kernel: 2 ceil_mode: true })"},
      {"AveragePoolingCeil",
       {2, 6, 7},
       R"(name: "l" average_pooling { kernel: 3 stride: 2 ceil_mode: true })"},
      {"AveragePoolingCeilPadded",
       {3, 4, 5},
       R"(name: "l" average_pooling { kernel: 4 stride: 3 pad: 2 ceil_mode: true })"},
      {"GlobalAveragePooling", {3, 6, 4}, R"(name: "l" global_average_pooling {})"},
      {"Relu", {2, 3, 5}, R"(name: "l" relu {})"},
      {"LeakyRelu", {2, 3, 5}, R"(name: "l" leaky_relu {})"},
      {"LeakyReluOfVectors", {31}, R"(name: "l" leaky_relu { slope: 0.2 })"},
      {"Gelu", {2, 3, 5}, R"(name: "l" gelu {})"},
      {"GeluByTanh", {31}, R"(name: "l" gelu { approximate: TANH })"},
      {"Silu", {2, 3, 5}, R"(name: "l" silu {})"},
      {"Tanh", {31}, R"(name: "l" tanh {})"},
      {"Sigmoid", {2, 3, 5}, R"(name: "l" sigmoid {})"},
      {"Dropout", {3, 4, 4}, R"(name: "l" dropout { ratio: 0.4 })"},
      {"DropoutOfNothing", {5}, R"(name: "l" dropout { ratio: 0 })"},
      {"BatchNormalisation", {3, 4, 5}, R"(name: "l" batch_normalisation {})"},
      {"BatchNormalisationOfVectors",
       {6},
       R"(name: "l" batch_normalisation { epsilon: 0.01 momentum: 0.5 })"},
      {"GroupNormalisation", {6, 3, 4}, R"(name: "l" group_normalisation { groups: 3 })"},
      {"GroupNormalisationOfOneGroup", {3, 5, 3}, R"(name: "l" group_normalisation { groups: 1 })"},
      {"GroupNormalisationOfEachChannel",
       {3, 2, 5},
       R"(name: "l" group_normalisation { groups: 3 epsilon: 0.01 })"},
      {"GroupNormalisationOfVectors", {12}, R"(name: "l" group_normalisation { groups: 2 })"},
      {"LayerNormalisation", {3, 4, 5}, R"(name: "l" layer_normalisation {})"},
      {"LayerNormalisationOfVectors", {131}, R"(name: "l" layer_normalisation { epsilon: 0.001 })"},
      {"L2Normalisation", {5, 3, 4}, R"(name: "l" l2_normalisation {})"},
      {"L2NormalisationOfVectors", {7}, R"(name: "l" l2_normalisation { epsilon: 0.1 scale: 2 })"},
      {"Flatten", {2, 3, 4}, R"(name: "l" flatten {})"},
      {"Add", {2, 3, 5}, R"(name: "l" add {})", {{2, 3, 5}}},
      {"AddOfThree", {7}, R"(name: "l" add {})", {{7}, {7}}},
      {"Multiply", {2, 3, 5}, R"(name: "l" multiply {})", {{2, 3, 5}}},
      {"Concat", {2, 3, 5}, R"(name: "l" concat {})", {{1, 3, 5}, {4, 3, 5}}},
      {"ConcatOfVectors", {3}, R"(name: "l" concat {})", {{6}}},
  };
  return cases;
}

}  // namespace kumo
