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
  constexpr size_t kLongest = 100;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  if (!printer.PrintToString(message, &text)) return "?";
  while (text.ends_with(' ')) text.pop_back();
  return Printable(text, kLongest);
}

const model::Layer* Find(const model::Network& network, const std::string& name) {
  const auto found = std::ranges::find(network.layers(), name, &model::Layer::name);
  return found == network.layers().end() ? nullptr : &*found;
}

// What stands behind its name.
std::string LayerText(const model::Layer* layer) {
  if (layer == nullptr) return kNone;
  model::Layer rest = *layer;
  rest.clear_name();
  return TextOf(rest);
}

bool Same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// What is left of a network besides its layers and its name.
model::Network RestOf(model::Network network) {
  network.clear_layers();
  network.clear_name();
  return network;
}

std::vector<SettingChange> LayerChanges(const model::Network& then, const model::Network& now) {
  std::vector<SettingChange> changes;
  for (const model::Layer& layer : then.layers()) {
    const model::Layer* const other = Find(now, layer.name());
    if (other != nullptr && Same(layer, *other)) continue;
    changes.push_back({"layer " + Printable(layer.name()), LayerText(&layer), LayerText(other)});
  }
  for (const model::Layer& layer : now.layers()) {
    if (Find(then, layer.name()) != nullptr) continue;
    changes.push_back({"layer " + Printable(layer.name()), kNone, LayerText(&layer)});
  }
  return changes;
}

}  // namespace

std::vector<SettingChange> NetworkChanges(const std::string& then_text,
                                          const std::string& now_text) {
  if (then_text.empty() || now_text.empty() || then_text == now_text) return {};
  model::Network then;
  model::Network now;
  if (!Parse(then_text, &then) || !Parse(now_text, &now)) {
    return {{"network", "a file of another release", "this one"}};
  }
  std::vector<SettingChange> changes = LayerChanges(then, now);
  if (const auto a = RestOf(then), b = RestOf(now); !Same(a, b)) {
    changes.push_back({"network", TextOf(a), TextOf(b)});
  }
  then.set_name(now.name());
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

}  // namespace kumo
