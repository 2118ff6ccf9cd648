#include "models/missing_layers.h"

#include <cctype>
#include <string>

namespace kumo {
namespace {

struct MissingLayer {
  std::string_view names;  // in lower case, without '_', separated by blanks
  std::string_view instead;
};

constexpr MissingLayer kMissing[] = {
    {"spacetodepth pixelunshuffle reorg",
     "reshape to C x H x 2 x W x 2, permute with axes [0, 2, 4, 1, 3], and reshape to 4C x H x W"},
    {"unpool unpooling maxunpool", "upsampling, by nearest neighbours"},
    {"rnn lstm gru recurrent bidirectional simplernn lstmcell grucell",
     "recurrent layers cannot be expressed: attention, causal if need be, or convolutions over the "
     "sequence come nearest"},
    {"depthwiseconv depthwiseconv2d depthwiseconvolution depthwise",
     "a convolution with as many groups as input channels"},
    {"separableconv separableconv2d separableconvolution",
     "a convolution with as many groups as input channels, and a convolution with kernel: 1"},
    {"conv3d convolution3d", "convolutions are two-dimensional: make depth a part of the channels"},
    {"prelu", "leaky_relu, whose slope is fixed"},
    {"elu selu celu", "leaky_relu, gelu or silu"},
    {"mish hardswish hswish softplus softsign", "silu or gelu"},
    {"relu6 hardtanh clip clamp", "relu, or tanh for bounded outputs"},
    {"hardsigmoid", "sigmoid"},
    {"rmsnorm rmsnormalisation rmsnormalization",
     "l2_normalisation with scale: the square root of the number of channels"},
    {"localresponsenormalization localresponsenormalisation localresponsenorm lrn",
     "batch_normalisation"},
    {"squeezeexcite squeezeexcitation seblock se",
     "multiply takes inputs of one shape, so a factor for each channel cannot be expressed"},
    {"subtract sub minus difference",
     "concat both inputs; the next layer with weights learns the difference"},
    {"dot bmm batchmatmul",
     "fully_connected for a product with weights, attention for products of activations"},
    {"identity noop dropoutidentity", "leave it out, and name the layer before it in inputs"},
    {"roipooling roialign",
     "two-stage detectors cannot be expressed; the loss multibox trains a single-shot detector"},
    {"nms nonmaxsuppression anchors",
     "leave it out: the loss multibox has default boxes, and kumo detect suppresses non-maxima"},
    {"l1 mae maeloss meanabsoluteerror",
     "huber with a small delta; mean_squared_error measures mean_absolute_error too"},
    {"hinge hingeloss", "softmax_cross_entropy"},
    {"focal focalloss weightedcrossentropy weightedsoftmax",
     "softmax_cross_entropy with class_weights"},
    {"kldiv kldivloss kullbackleibler",
     "softmax_cross_entropy with a share for each class as label (data.reader = ctf, data.classes "
     "= 0)"},
    {"triplet tripletloss contrastive contrastiveloss cosineembedding",
     "a Siamese network that tells same from different: slice, tensors_of, concat and "
     "softmax_cross_entropy"},
    {"ctc ctcloss", "labels of another length than the sequence cannot be expressed"},
};

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_' && c != '-')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

bool HasWord(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = words.find(' ');
    if (words.substr(0, end) == word) return true;
    words = end == std::string_view::npos ? "" : words.substr(end + 1);
  }
  return false;
}

}  // namespace

std::string_view NearestWayTo(std::string_view name) {
  const std::string plain = Plain(name);
  for (const MissingLayer& layer : kMissing) {
    if (HasWord(layer.names, plain)) return layer.instead;
  }
  return "";
}

}  // namespace kumo
