#include "common/job/network_changes.h"

#include <algorithm>
#include <string_view>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "common/base/printable.h"
#include "proto/model.pb.h"

namespace kumo {
namespace {

constexpr size_t kMostChanges = 5;  // that are named
constexpr char kNone[] = "(none)";

class NoErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

bool Parse(const std::string& text, model::Network* network) {
  google::protobuf::TextFormat::Parser parser;
  NoErrors unsaid;
  parser.RecordErrorsTo(&unsaid);
  parser.SetRecursionLimit(32);
  return parser.ParseFromString(text, network);
}

std::string TextOf(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  if (!printer.PrintToString(message, &text)) return "?";
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// The part of each text that differs, with some text before it.
SettingChange Change(const std::string& key, const std::string& then, const std::string& now) {
  constexpr size_t kLongest = 100;
  constexpr size_t kBefore = 40;
  const size_t same = std::ranges::mismatch(then, now).in1 - then.begin();
  const size_t cut = std::max(then.size(), now.size()) <= kLongest || same <= kBefore
                         ? 0
                         : then.rfind(' ', same - kBefore);
  const auto shown = [&](const std::string& text) {
    if (cut == 0 || cut == text.npos) return Printable(text, kLongest);
    return "..." + Printable(std::string_view(text).substr(std::min(cut, text.size())), kLongest);
  };
  return {key, shown(then), shown(now)};
}

// Clears the fields for which `goes` holds, wherever they stand. A message in a oneof (a layer's
// kind) stays, with its own fields cleared.
void Clear(bool (*goes)(const google::protobuf::FieldDescriptor&),
           google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (goes(*field)) {
      if (is_message && field->real_containing_oneof() != nullptr) {
        reflection.MutableMessage(message, field)->Clear();
      } else {
        reflection.ClearField(message, field);
      }
    } else if (is_message && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
        Clear(goes, reflection.MutableRepeatedMessage(message, field, i));
      }
    } else if (is_message) {
      Clear(goes, reflection.MutableMessage(message, field));
    }
  }
}

bool IsInitialiser(const google::protobuf::FieldDescriptor& field) {
  return field.message_type() == model::Initialiser::descriptor();
}

bool IsOfTraining(const google::protobuf::FieldDescriptor& field) {
  return field.options().GetExtension(model::training);
}

void KeepWhatCounts(NetworkUse use, model::Network* network) {
  network->clear_name();
  network->clear_outputs();
  if (use == NetworkUse::kJob) return;
  Clear(IsInitialiser, network);
  if (use == NetworkUse::kTraining) return;
  ClearFactors(network);
  Clear(IsOfTraining, network);
}

const model::Layer* Find(const model::Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.layers(), name, &model::Layer::name);
  return found == network.layers().end() ? nullptr : &*found;
}

// The layer's text without its name.
std::string LayerText(const model::Layer* layer) {
  if (layer == nullptr) return kNone;
  model::Layer rest = *layer;
  rest.clear_name();
  return TextOf(rest);
}

bool Same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// The network without its layers.
model::Network RestOf(model::Network network) {
  network.clear_layers();
  return network;
}

std::vector<SettingChange> LayerChanges(const model::Network& then, const model::Network& now) {
  std::vector<SettingChange> changes;
  for (const model::Layer& layer : then.layers()) {
    const model::Layer* const other = Find(now, layer.name());
    if (other != nullptr && Same(layer, *other)) continue;
    changes.push_back(
        Change("layer " + Printable(layer.name()), LayerText(&layer), LayerText(other)));
  }
  for (const model::Layer& layer : now.layers()) {
    if (Find(then, layer.name()) != nullptr) continue;
    changes.push_back(Change("layer " + Printable(layer.name()), kNone, LayerText(&layer)));
  }
  return changes;
}

}  // namespace

std::vector<SettingChange> NetworkChanges(const std::string& then_text, const std::string& now_text,
                                          NetworkUse use) {
  if (then_text.empty() || now_text.empty() || then_text == now_text) return {};
  model::Network then;
  model::Network now;
  if (!Parse(then_text, &then) || !Parse(now_text, &now)) {
    return {{"network", "one that this release cannot read", "this one"}};
  }
  KeepWhatCounts(use, &then);
  KeepWhatCounts(use, &now);
  std::vector<SettingChange> changes = LayerChanges(then, now);
  if (const auto a = RestOf(then), b = RestOf(now); !Same(a, b)) {
    changes.push_back(Change("network", TextOf(a), TextOf(b)));
  }
  if (changes.empty() && !Same(then, now)) {
    changes.push_back({"network", "its layers in one order", "in another"});
  }
  if (changes.size() > kMostChanges) {
    const std::string more = std::to_string(changes.size() - kMostChanges) + " more";
    changes.resize(kMostChanges);
    changes.push_back({"layers", more, "others"});
  }
  return changes;
}

void ClearFactors(model::Network* network) {
  const auto clear = [](model::TensorFactors* factors) {
    factors->clear_learning_rate_factor();
    if (factors->weight_decay_factor() > 0) {
      factors->set_weight_decay_factor(1);
    } else {
      factors->clear_weight_decay_factor();
    }
  };
  if (network->has_biases()) clear(network->mutable_biases());
  if (network->has_scales()) clear(network->mutable_scales());
  for (model::Layer& layer : *network->mutable_layers()) {
    layer.clear_trainable();
    layer.clear_learning_rate_factor();
    layer.clear_weight_decay_factor();
  }
}

}  // namespace kumo
