#include "tests/models/ops/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include <glog/logging.h>

#include "common/base/rng.h"

namespace kumo::reference {
namespace {

// x[n][c][y][x], or `outside` beyond the border.
double At(const Numbers& x, const Shape& shape, int64_t n, int64_t c, int64_t row, int64_t column,
          double outside) {
  if (row < 0 || row >= shape.height() || column < 0 || column >= shape.width()) return outside;
  return x[((n * shape.channels() + c) * shape.height() + row) * shape.width() + column];
}

template <typename F>
Numbers Each(const Numbers& x, F f) {
  Numbers y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), f);
  return y;
}

Numbers ConnectPositions(const Call& call, const Numbers& x,
                         const std::vector<Numbers>& parameters) {
  const int64_t in = call.shapes[0].channels();
  const int64_t plane = call.shapes[0].plane();
  const int64_t out = call.layer.fully_connected().outputs();
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t p = 0; p < plane; ++p) {
        double sum = parameters.size() > 1 ? parameters[1][o] : 0;
        for (int64_t i = 0; i < in; ++i) {
          sum += parameters[0][o * in + i] * x[(n * in + i) * plane + p];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

Numbers FullyConnect(const Call& call, const Numbers& x, const std::vector<Numbers>& parameters) {
  const int64_t out = call.layer.fully_connected().outputs();
  if (call.layer.fully_connected().per_position()) return ConnectPositions(call, x, parameters);
  const int64_t in = call.shapes[0].size();
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = parameters.size() > 1 ? parameters[1][o] : 0;
      for (int64_t i = 0; i < in; ++i) sum += parameters[0][o * in + i] * x[n * in + i];
      y.push_back(sum);
    }
  }
  return y;
}

PoolingSpec PoolingOf(const model::Pooling& settings, const Shape& shape) {
  PoolingSpec spec = {shape, settings.kernel(), settings.kernel(),
                      settings.stride() == 0 ? settings.kernel() : settings.stride(),
                      settings.pad()};
  spec.ceil = settings.ceil_mode();
  return spec;
}

// Calls each(y index, window's numbers inside the input) in the order of y.
template <typename Each>
void ForEachWindow(const PoolingSpec& spec, int batch, const Numbers& x, Each each) {
  const Shape out = spec.output();
  const double outside = std::numeric_limits<double>::quiet_NaN();
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < out.size(); ++i) {
      const int64_t c = i / out.plane();
      const int64_t row = i % out.plane() / out.width() * spec.stride - spec.pad;
      const int64_t column = i % out.width() * spec.stride - spec.pad;
      Numbers window;
      for (int k = 0; k < spec.kernel_height * spec.kernel_width; ++k) {
        const double value = At(x, spec.input, n, c, row + k / spec.kernel_width,
                                column + k % spec.kernel_width, outside);
        if (!std::isnan(value)) window.push_back(value);
      }
      each(window);
    }
  }
}

Numbers AveragePool(const PoolingSpec& spec, int batch, const Numbers& x) {
  Numbers y;
  ForEachWindow(spec, batch, x, [&](const Numbers& window) {
    double sum = 0;
    for (const double value : window) sum += value;
    y.push_back(sum / static_cast<double>(window.size()));
  });
  return y;
}

// Each element adds its multiples of the filters to the output.
Numbers ConvolveTransposed(const Call& call, const Numbers& x,
                           const std::vector<Numbers>& parameters) {
  const model::TransposedConvolution& settings = call.layer.transposed_convolution();
  const auto or_else = [](int value, int fallback) { return value == 0 ? fallback : value; };
  const int kernel_height = or_else(settings.kernel_height(), settings.kernel());
  const int kernel_width = or_else(settings.kernel_width(), settings.kernel());
  const int stride = or_else(settings.stride(), 1);
  const int dilation = or_else(settings.dilation(), 1);
  const int groups = or_else(settings.groups(), 1);
  const Shape& shape = call.shapes[0];
  const auto size = [&](int64_t inputs, int kernel) {
    return (inputs - 1) * stride - 2 * settings.pad() + dilation * (kernel - 1) + 1 +
           settings.output_pad();
  };
  const int64_t height = size(shape.height(), kernel_height);
  const int64_t width = size(shape.width(), kernel_width);
  const int64_t outputs = settings.outputs();
  Numbers y(call.batch * outputs * height * width);
  for (size_t i = 0; parameters.size() > 1 && i < y.size(); ++i) {
    y[i] = parameters[1][static_cast<int64_t>(i) / (height * width) % outputs];
  }
  const int64_t per_group = outputs / groups;
  for (int64_t i = 0; i < call.batch * shape.size(); ++i) {
    const int64_t n = i / shape.size();
    const int64_t c = i % shape.size() / shape.plane();
    const int64_t first = c / (shape.channels() / groups) * per_group;
    for (int64_t k = 0; k < per_group * kernel_height * kernel_width; ++k) {
      const int64_t ky = k / kernel_width % kernel_height;
      const int64_t row =
          i % shape.plane() / shape.width() * stride - settings.pad() + ky * dilation;
      const int64_t column =
          i % shape.width() * stride - settings.pad() + k % kernel_width * dilation;
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      const int64_t output = first + k / (kernel_height * kernel_width);
      y[((n * outputs + output) * height + row) * width + column] +=
          x[i] * parameters[0][c * per_group * kernel_height * kernel_width + k];
    }
  }
  return y;
}

// Each result from its own place among the sources.
Numbers Upsample(const Call& call, const Numbers& x) {
  const model::Upsampling& settings = call.layer.upsampling();
  const Shape& shape = call.shapes[0];
  const double factor = settings.factor();
  const int64_t height = shape.height() * settings.factor();
  const int64_t width = shape.width() * settings.factor();
  const bool bilinear = settings.interpolation() == model::Upsampling::BILINEAR;
  const auto place_of = [&](int64_t i, int64_t sources) {
    const double place = (static_cast<double>(i) + 0.5) / factor - 0.5;
    if (!bilinear) return std::round(place);
    return std::clamp(place, 0.0, static_cast<double>(sources - 1));
  };
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t i = 0; i < shape.channels() * height * width; ++i) {
      const int64_t c = i / (height * width);
      const double row = place_of(i / width % height, shape.height());
      const double column = place_of(i % width, shape.width());
      double sum = 0;
      for (int64_t p = 0; p < shape.plane(); ++p) {
        const double near_row = 1 - std::abs(row - static_cast<double>(p / shape.width()));
        const double near_column = 1 - std::abs(column - static_cast<double>(p % shape.width()));
        if (near_row <= 0 || near_column <= 0) continue;
        sum += near_row * near_column * x[(n * shape.channels() + c) * shape.plane() + p];
      }
      y.push_back(sum);
    }
  }
  return y;
}

// As many factors as there are numbers to drop some of, in the order that people count them.
Numbers DropFactors(const Call& call, float ratio, int64_t count) {
  if (!call.training) return Numbers(static_cast<size_t>(count), 1.0);
  Rng rng(call.streams.seed, RngPurpose::kDropout, call.streams.partition, call.streams.round,
          call.streams.step * 65536 + static_cast<uint64_t>(call.index));
  Numbers factors;
  for (int64_t i = 0; i < count; ++i) {
    factors.push_back(rng.NextUniform() < ratio ? 0.0 : 1.0 / (1.0 - static_cast<double>(ratio)));
  }
  return factors;
}

Numbers Drop(const Call& call, const Numbers& x) {
  const Numbers factors = DropFactors(call, call.layer.dropout().ratio(), std::ssize(x));
  Numbers y;
  for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * factors[i]);
  return y;
}

Numbers Normalise(const Call& call, const Numbers& x, const std::vector<Numbers>& parameters) {
  const model::BatchNormalisation& settings = call.layer.batch_normalisation();
  const double epsilon =
      settings.epsilon() == 0.0f ? 1e-5 : static_cast<double>(settings.epsilon());
  const int64_t plane = call.shapes[0].plane();
  Numbers y(x.size());
  for (int64_t c = 0; c < call.shapes[0].channels(); ++c) {
    std::vector<int64_t> places;
    for (int64_t n = 0; n < call.batch; ++n) {
      for (int64_t i = 0; i < plane; ++i)
        places.push_back((n * call.shapes[0].channels() + c) * plane + i);
    }
    double mean = parameters[2][c];
    double variance = parameters[3][c];
    if (call.training) {
      mean = variance = 0;
      for (const int64_t i : places) mean += x[i] / static_cast<double>(places.size());
      for (const int64_t i : places) {
        variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(places.size());
      }
    }
    for (const int64_t i : places) {
      y[i] = parameters[0][c] * (x[i] - mean) / std::sqrt(variance + epsilon) + parameters[1][c];
    }
  }
  return y;
}

double OrElse(float value, double fallback) {
  return value == 0.0f ? fallback : static_cast<double>(value);
}

// Of `groups` parts of each sample; scale and shift are of as many numbers as they have.
Numbers NormaliseGroups(const Call& call, int groups, double epsilon, const Numbers& x,
                        const Numbers& scale, const Numbers& shift) {
  const int64_t size = call.shapes[0].size();
  const int64_t per_group = size / groups;
  const int64_t per_scale = size / static_cast<int64_t>(scale.size());
  Numbers y(x.size());
  for (int64_t begin = 0; begin < call.batch * size; begin += per_group) {
    double mean = 0;
    double variance = 0;
    for (int64_t i = begin; i < begin + per_group; ++i) {
      mean += x[i] / static_cast<double>(per_group);
    }
    for (int64_t i = begin; i < begin + per_group; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(per_group);
    }
    for (int64_t i = begin; i < begin + per_group; ++i) {
      const int64_t tensor = i % size / per_scale;
      y[i] = scale[tensor] * (x[i] - mean) / std::sqrt(variance + epsilon) + shift[tensor];
    }
  }
  return y;
}

Numbers NormaliseLengths(const Call& call, const Numbers& x, const Numbers& scale) {
  const bool to_length = call.layer.l2_normalisation().add_to_length();
  const double epsilon = OrElse(call.layer.l2_normalisation().epsilon(), to_length ? 1e-5 : 1e-10);
  const Shape& shape = call.shapes[0];
  Numbers y(x.size());
  for (int64_t i = 0; i < call.batch * shape.size(); ++i) {
    double squares = 0;
    const int64_t first = i / shape.size() * shape.size() + i % shape.plane();
    for (int64_t c = 0; c < shape.channels(); ++c) {
      squares += x[first + c * shape.plane()] * x[first + c * shape.plane()];
    }
    const double length = to_length ? std::sqrt(squares) + epsilon : std::sqrt(squares + epsilon);
    y[i] = scale[i % shape.size() / shape.plane()] * x[i] / length;
  }
  return y;
}

Numbers NormalisePositions(const Call& call, const Numbers& x,
                           const std::vector<Numbers>& parameters) {
  const double epsilon = OrElse(call.layer.layer_normalisation().epsilon(), 1e-5);
  const Shape& shape = call.shapes[0];
  const auto channels = static_cast<double>(shape.channels());
  Numbers y(x.size());
  for (int64_t i = 0; i < call.batch * shape.size(); ++i) {
    const int64_t first = i / shape.size() * shape.size() + i % shape.plane();
    double mean = 0;
    double variance = 0;
    for (int64_t c = 0; c < shape.channels(); ++c) mean += x[first + c * shape.plane()] / channels;
    for (int64_t c = 0; c < shape.channels(); ++c) {
      const double away = x[first + c * shape.plane()] - mean;
      variance += away * away / channels;
    }
    const int64_t c = i % shape.size() / shape.plane();
    y[i] = parameters[0][c] * (x[i] - mean) / std::sqrt(variance + epsilon);
    if (parameters.size() > 1) y[i] += parameters[1][c];
  }
  return y;
}

Numbers Embed(const Call& call, const Numbers& x, const Numbers& weight) {
  const int64_t positions = call.shapes[0].size();
  const int64_t out = call.layer.embedding().outputs();
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t p = 0; p < positions; ++p) {
        y.push_back(weight[std::llround(x[n * positions + p]) * out + o]);
      }
    }
  }
  return y;
}

Numbers AddPositions(const Call& call, const Numbers& x, const Numbers& weight) {
  const Shape& shape = call.shapes[0];
  Numbers y(x.size());
  for (int64_t i = 0; i < call.batch * shape.size(); ++i) {
    const int64_t c = i % shape.size() / shape.plane();
    y[i] = x[i] + weight[i % shape.plane() * shape.channels() + c];
  }
  return y;
}

Numbers Attend(const Call& call, const Numbers& x) {
  const model::Attention& settings = call.layer.attention();
  const int64_t length = call.shapes[0].plane();
  const int64_t channels = call.shapes[0].channels() / 3;
  const int64_t per_head = channels / settings.heads();
  // part: 0 queries, 1 keys, 2 values
  const auto at = [&](int64_t n, int64_t part, int64_t channel, int64_t position) {
    return x[((n * 3 + part) * channels + channel) * length + position];
  };
  const Numbers factors =
      DropFactors(call, settings.dropout(), call.batch * settings.heads() * length * length);
  Numbers y(x.size() / 3);
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t h = 0; h < channels; h += per_head) {
      for (int64_t t = 0; t < length; ++t) {
        Numbers weights;
        double sum = 0;
        for (int64_t s = 0; s < (settings.causal() ? t + 1 : length); ++s) {
          double product = 0;
          for (int64_t d = h; d < h + per_head; ++d) product += at(n, 0, d, t) * at(n, 1, d, s);
          weights.push_back(std::exp(product / std::sqrt(static_cast<double>(per_head))));
          sum += weights.back();
        }
        const int64_t row = ((n * settings.heads() + h / per_head) * length + t) * length;
        for (size_t s = 0; s < weights.size(); ++s) weights[s] *= factors[row + s];
        for (int64_t d = h; d < h + per_head; ++d) {
          double mean = 0;
          for (size_t s = 0; s < weights.size(); ++s) {
            mean += weights[s] / sum * at(n, 2, d, static_cast<int64_t>(s));
          }
          y[(n * channels + d) * length + t] = mean;
        }
      }
    }
  }
  return y;
}

// Numbers where `move` puts them, which gets places by axis; an empty answer drops one. What is
// kept is put in the order of its new places.
template <typename Move>
Numbers Rearrange(const Call& call, const Numbers& x, Move move) {
  const Shape& shape = call.shapes[0];
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    std::vector<std::pair<std::vector<int64_t>, double>> placed;
    for (int64_t i = 0; i < shape.size(); ++i) {
      std::vector<int64_t> place(8);
      int64_t rest = i;
      for (int axis = shape.rank(); axis-- > 0; rest /= shape.extent(axis)) {
        place[axis] = rest % shape.extent(axis);
      }
      const std::vector<int64_t> to = move(place);
      if (!to.empty()) placed.emplace_back(to, x[n * shape.size() + i]);
    }
    std::sort(placed.begin(), placed.end());
    for (const auto& [to, number] : placed) y.push_back(number);
  }
  return y;
}

Numbers ShufflePixels(const Call& call, const Numbers& x) {
  const int64_t factor = call.layer.pixel_shuffle().factor();
  const Shape& shape = call.shapes[0];
  Numbers y(x.size());
  for (int64_t i = 0; i < call.batch * shape.size(); ++i) {
    const int64_t column = i % shape.width();
    const int64_t row = i / shape.width() % shape.height();
    const int64_t channel = i / shape.plane() % shape.channels();
    const int64_t plane =
        i / shape.size() * (shape.channels() / (factor * factor)) + channel / (factor * factor);
    const int64_t to_row = row * factor + channel / factor % factor;
    const int64_t to_column = column * factor + channel % factor;
    y[(plane * shape.height() * factor + to_row) * shape.width() * factor + to_column] = x[i];
  }
  return y;
}

// Inputs number by number, from the first on.
template <typename F>
Numbers Combine(const Call& call, const Numbers& x, F f) {
  const int64_t n = call.batch * call.shapes[0].size();
  Numbers y(x.begin(), x.begin() + n);
  for (size_t k = 1; k < call.shapes.size(); ++k) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(y[i], x[static_cast<int64_t>(k) * n + i]);
  }
  return y;
}

Numbers Concatenate(const Call& call, const Numbers& x) {
  Numbers y;
  for (int64_t n = 0; n < call.batch; ++n) {
    auto input = x.begin();
    for (const Shape& shape : call.shapes) {
      const auto sample = input + n * shape.size();
      y.insert(y.end(), sample, sample + shape.size());
      input += call.batch * shape.size();
    }
  }
  return y;
}

ConvolutionSpec ConvolutionOf(const model::Convolution& settings, const Shape& shape) {
  const auto or_else = [](int value, int fallback) { return value == 0 ? fallback : value; };
  ConvolutionSpec spec = {shape,
                          settings.outputs(),
                          or_else(settings.kernel_height(), settings.kernel()),
                          or_else(settings.kernel_width(), settings.kernel()),
                          or_else(settings.stride(), 1),
                          settings.pad(),
                          or_else(settings.dilation(), 1),
                          !settings.no_bias()};
  spec.groups = or_else(settings.groups(), 1);
  return spec;
}

}  // namespace

Numbers Convolve(const ConvolutionSpec& spec, int batch, const Numbers& x, const Numbers& weight,
                 const Numbers& bias) {
  const Shape out = spec.output();
  const int64_t taps = int64_t{spec.kernel_height} * spec.kernel_width;
  const int64_t channels = spec.input.channels() / spec.groups;
  Numbers y;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t i = 0; i < out.size(); ++i) {
      const int64_t o = i / out.plane();
      const int64_t first_channel = o / (spec.outputs / spec.groups) * channels;
      const int64_t row = i % out.plane() / out.width() * spec.stride - spec.pad;
      const int64_t column = i % out.width() * spec.stride - spec.pad;
      double sum = bias.empty() ? 0 : bias[o];
      for (int64_t k = 0; k < channels * taps; ++k) {
        const int64_t c = first_channel + k / taps;
        const int64_t ky = k % taps / spec.kernel_width;
        const int64_t kx = k % spec.kernel_width;
        sum += weight[o * channels * taps + k] *
               At(x, spec.input, n, c, row + ky * spec.dilation, column + kx * spec.dilation, 0);
      }
      y.push_back(sum);
    }
  }
  return y;
}

Numbers MaxPool(const PoolingSpec& spec, int batch, const Numbers& x) {
  Numbers y;
  ForEachWindow(spec, batch, x, [&](const Numbers& window) {
    y.push_back(*std::max_element(window.begin(), window.end()));
  });
  return y;
}

Numbers Forward(const Call& call, const Numbers& x, const std::vector<Numbers>& parameters) {
  switch (call.layer.kind_case()) {
    case model::Layer::kFullyConnected:
      return FullyConnect(call, x, parameters);
    case model::Layer::kConvolution:
      return Convolve(ConvolutionOf(call.layer.convolution(), call.shapes[0]), call.batch, x,
                      parameters[0], parameters.size() > 1 ? parameters[1] : Numbers());
    case model::Layer::kMaxPooling:
      return MaxPool(PoolingOf(call.layer.max_pooling(), call.shapes[0]), call.batch, x);
    case model::Layer::kAveragePooling:
      return AveragePool(PoolingOf(call.layer.average_pooling(), call.shapes[0]), call.batch, x);
    case model::Layer::kGlobalAveragePooling: {
      const Shape& shape = call.shapes[0];
      return AveragePool({shape, static_cast<int>(shape.height()), static_cast<int>(shape.width())},
                         call.batch, x);
    }
    case model::Layer::kTransposedConvolution:
      return ConvolveTransposed(call, x, parameters);
    case model::Layer::kUpsampling:
      return Upsample(call, x);
    case model::Layer::kRelu:
      return Each(x, [](double v) { return std::max(v, 0.0); });
    case model::Layer::kLeakyRelu: {
      const float given = call.layer.leaky_relu().slope();
      const double slope = given == 0.0f ? 0.01 : static_cast<double>(given);
      return Each(x, [slope](double v) { return v < 0 ? slope * v : v; });
    }
    case model::Layer::kGelu:
      if (call.layer.gelu().approximate() == model::Gelu::TANH) {
        return Each(x, [](double v) {
          return v / 2 *
                 (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
        });
      }
      return Each(x, [](double v) { return v / 2 * (1 + std::erf(v / std::numbers::sqrt2)); });
    case model::Layer::kSilu:
      return Each(x, [](double v) { return v / (1 + std::exp(-v)); });
    case model::Layer::kTanh:
      return Each(x, [](double v) { return std::tanh(v); });
    case model::Layer::kSigmoid:
      return Each(x, [](double v) { return 1 / (1 + std::exp(-v)); });
    case model::Layer::kDropout:
      return Drop(call, x);
    case model::Layer::kBatchNormalisation:
      return Normalise(call, x, parameters);
    case model::Layer::kGroupNormalisation: {
      const model::GroupNormalisation& settings = call.layer.group_normalisation();
      return NormaliseGroups(call, settings.groups(), OrElse(settings.epsilon(), 1e-5), x,
                             parameters[0], parameters[1]);
    }
    case model::Layer::kLayerNormalisation:
      if (call.layer.layer_normalisation().per_position()) {
        return NormalisePositions(call, x, parameters);
      }
      return NormaliseGroups(call, 1, OrElse(call.layer.layer_normalisation().epsilon(), 1e-5), x,
                             parameters[0], parameters[1]);
    case model::Layer::kL2Normalisation:
      return NormaliseLengths(call, x, parameters[0]);
    case model::Layer::kEmbedding:
      return Embed(call, x, parameters[0]);
    case model::Layer::kPositionalEmbedding:
      return AddPositions(call, x, parameters[0]);
    case model::Layer::kAttention:
      return Attend(call, x);
    case model::Layer::kReshape:
    case model::Layer::kFlatten:
      return x;
    case model::Layer::kPermute: {
      const auto& axes = call.layer.permute().axes();
      return Rearrange(call, x, [&](std::vector<int64_t> place) {
        std::vector<int64_t> moved;
        for (const int axis : axes) moved.push_back(place[axis]);
        return moved;
      });
    }
    case model::Layer::kSlice: {
      const model::Slice& settings = call.layer.slice();
      return Rearrange(call, x, [&](std::vector<int64_t> place) {
        int64_t& along = place[settings.axis()];
        const bool kept = along >= settings.begin() && along < settings.end();
        along -= settings.begin();
        return kept ? place : std::vector<int64_t>();
      });
    }
    case model::Layer::kPixelShuffle:
      return ShufflePixels(call, x);
    case model::Layer::kAdd:
      return Combine(call, x, [](double a, double b) { return a + b; });
    case model::Layer::kMultiply:
      return Combine(call, x, [](double a, double b) { return a * b; });
    case model::Layer::kConcat:
      return Concatenate(call, x);
    default:
      break;
  }
  LOG(FATAL) << "no reference for layer kind " << call.layer.kind_case();
}

}  // namespace kumo::reference
