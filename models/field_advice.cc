#include "models/field_advice.h"

#include <vector>

#include "common/base/did_you_mean.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"
#include "models/missing_layers.h"
#include "proto/model.pb.h"

namespace kumo {
namespace {

// Names in other programs of fields that are no layer or loss, in any message.
constexpr KnownName kFieldWords[] = {
    {"layers", "layer"},
    {"input", "input_shape input_dim data shape"},
    {"channels", "channel depth in_channels c"},
    {"height", "rows h"},
    {"width", "columns cols w"},
    {"extents", "shape size dims dimensions"},
    {"vocabulary", "vocab vocab_size num_embeddings num_tokens n_vocab"},
    {"heads", "num_heads n_head nhead n_heads"},
    {"causal", "is_causal causal_mask autoregressive mask"},
    {"per_position", "time_distributed pointwise along_channels"},
    {"no_shift", "no_bias use_bias elementwise_affine"},
    {"deviation", "std stddev sigma"},
    {"axes", "dims order perm permutation"},
    {"axis", "dim dimension"},
    {"normal", "gaussian random_normal trunc_normal"},
    {"outputs",
     "output units num_output num_outputs filters num_filter out_channels out_features num_hidden "
     "hidden features size n"},
    {"kernel", "kernel_size window window_size filter_size pool_size ksize size"},
    {"stride", "strides"},
    {"pad", "padding pads"},
    {"factor", "scale_factor upscale_factor scale scales block_size blocksize size"},
    {"interpolation", "mode method interp"},
    {"activation", "sigmoid softmax mode"},
    {"smooth", "smooth_nr smooth_dr eps"},
    {"output_pad", "output_padding adj"},
    {"ceil_mode", "ceil ceiling pooling_convention round_mode"},
    {"dilation", "dilations dilate dilation_rate"},
    {"groups", "group num_group num_groups feature_group_count depth_multiplier"},
    {"no_bias", "bias_term use_bias with_bias"},
    {"weight", "weights weight_filler kernel_initializer initializer init w"},
    {"bias", "bias_filler bias_initializer b"},
    {"ratio", "rate p prob probability dropout_rate dropout_ratio keep_prob"},
    {"label_smoothing", "smoothing smooth_alpha label_smooth"},
    {"ignored_label", "ignore_index ignore_label ignore void_label"},
    {"class_weights", "class_weight weight weights"},
    {"positive_weights", "pos_weight pos_weights positive_weight"},
    {"slope", "negative_slope alpha leak"},
    {"approximate", "approximation tanh"},
    {"epsilon", "eps"},
    {"momentum", "decay"},
    {"trainable", "train requires_grad frozen freeze fixed"},
    {"learning_rate_factor", "lr_mult lr_scale learning_rate lr lr_multiplier"},
    {"weight_decay_factor", "decay_mult wd_mult weight_decay"},
    {"magnitude", "gain scale variance"},
    {"distribution", "rnd_type"},
    {"fan", "factor_type fan_mode mode"},
    {"xavier", "glorot glorot_uniform glorot_normal xavier_uniform xavier_normal"},
    {"lecun_normal", "lecun"},
    {"he_normal", "he kaiming kaiming_normal msra msra_prelu"},
    {"fan_in_uniform", "he_uniform kaiming_uniform lecun_uniform uniform"},
    {"zero", "zeros"},
    {"constant", "const fill"},
};

std::string_view WordsFor(std::string_view field) {
  for (const LayerKind& kind : LayerKinds()) {
    if (field == kind.name) return kind.also;
  }
  for (const LossKind& kind : LossKinds()) {
    if (field == kind.name) return kind.also;
  }
  for (const KnownName& words : kFieldWords) {
    if (field == words.name) return words.also;
  }
  return "";
}

// The parts of `text` between double quotes.
std::vector<std::string> QuotedIn(std::string_view text) {
  std::vector<std::string> quoted;
  size_t begin = 0, end = 0;
  while ((begin = text.find('"', end)) != std::string_view::npos &&
         (end = text.find('"', begin + 1)) != std::string_view::npos) {
    quoted.emplace_back(text.substr(begin + 1, end - begin - 1));
    ++end;
  }
  return quoted;
}

}  // namespace

std::string FieldAdvice(const google::protobuf::Descriptor& message, std::string_view field) {
  std::vector<KnownName> known;
  for (int i = 0; i < message.field_count(); ++i) {
    const std::string_view name = message.field(i)->name();
    known.push_back({name, WordsFor(name)});
  }
  std::vector<std::string> names;
  for (const size_t i : Meant(field, known)) names.emplace_back(known[i].name);
  if (!names.empty()) return DidYouMean(names);
  std::string all;
  for (const KnownName& name : known) all += (all.empty() ? "" : ", ") + std::string(name.name);
  return all.empty() ? "; it has none" : "; it has " + all;
}

std::string Explained(const std::string& error) {
  const std::vector<std::string> quoted = QuotedIn(error);
  if (!error.starts_with("Message type \"") || quoted.size() != 2) return error;
  const google::protobuf::Descriptor* message =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(quoted[0]);
  if (message == nullptr) return error;
  const std::string what = std::string(message->name()) + " has no field " + quoted[1];
  const auto& network = *model::Network::descriptor();
  if (message == model::Layer::descriptor()) {
    const std::string_view way = NearestWayTo(quoted[1]);
    if (!way.empty()) {
      return "Kumo has no layer " + quoted[1] + "; " + std::string(way) +
             " (docs/networks.md#how-do-i-express-)";
    }
  }
  const bool left_open = message != &network && (quoted[1] == "layers" || quoted[1] == "input");
  if (left_open) return what + "; is a } missing before it?";
  return what + FieldAdvice(*message, quoted[1]);
}

}  // namespace kumo
