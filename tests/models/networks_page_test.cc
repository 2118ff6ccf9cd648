// docs/networks.md against the lists of layers and losses and against proto/model.proto: nothing is
// missing, nothing is there that does not exist, and what it says of defaults, limits and shapes
// holds.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <regex>
#include <set>

#include "common/base/rng.h"
#include "models/backend/cpu/cpu_backend.h"
#include "models/layers/layer.h"
#include "models/layers/loss.h"
#include "models/net/net.h"
#include "models/network.h"
#include "tests/models/networks_page.h"
#include "tests/models/numbers.h"

namespace kumo {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::ElementsAreArray;
using testing::HasSubstr;

const std::vector<NetworksSection>& Page() {
  static const std::vector<NetworksSection> page = ReadNetworksPage(KUMO_NETWORKS_PAGE);
  return page;
}

std::vector<std::string> NamesIn(const std::string& chapter) {
  std::vector<std::string> names;
  for (const NetworksSection& section : Page()) {
    if (section.chapter == chapter && !section.name.empty()) names.push_back(section.name);
  }
  return names;
}

// What a section is about; null where the text format has no such thing.
const Descriptor* MessageOf(const NetworksSection& section) {
  if (section.chapter == "The file") {
    if (section.name == "network") return model::Network::descriptor();
    if (section.name == "factors") return model::TensorFactors::descriptor();
    if (section.name == "input") return model::Input::descriptor();
    return section.name == "layer" ? model::Layer::descriptor() : nullptr;
  }
  const Descriptor* owner = section.chapter == "Initialisers" ? model::Initialiser::descriptor()
                                                              : model::Layer::descriptor();
  const FieldDescriptor* field = owner->FindFieldByName(section.name);
  return field == nullptr ? nullptr : field->message_type();
}

// Calls visit(section, row, field) for each row of each table.
template <typename Visit>
void ForEachRow(const Visit& visit) {
  int rows = 0;
  for (const NetworksSection& section : Page()) {
    const Descriptor* message = MessageOf(section);
    for (const FieldRow& row : section.rows) {
      if (message == nullptr || section.name.empty()) continue;
      const FieldDescriptor* field = message->FindFieldByName(row.field);
      if (field == nullptr) continue;
      SCOPED_TRACE(section.name + "." + row.field);
      visit(section, row, field);
      ++rows;
    }
  }
  EXPECT_GE(rows, 25);
}

model::Network ExampleOf(const NetworksSection& section) {
  const NetworksSection& used = section.chapter == "The file" ? Page().front() : section;
  Result<model::Network> network = ParseNetwork(used.network(), "docs/networks.md " + used.name);
  EXPECT_TRUE(network.ok()) << network.status().message();
  if (!network.ok()) return model::Network();
  if (MessageOf(section) == model::TensorFactors::descriptor()) network->mutable_biases();
  return *network;
}

void CollectMessages(const Descriptor* wanted, Message* in, std::vector<Message*>* found) {
  if (in->GetDescriptor() == wanted) found->push_back(in);
  std::vector<const FieldDescriptor*> fields;
  in->GetReflection()->ListFields(*in, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const auto* reflection = in->GetReflection();
    if (!field->is_repeated()) {
      CollectMessages(wanted, reflection->MutableMessage(in, field), found);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*in, field); ++i) {
      CollectMessages(wanted, reflection->MutableRepeatedMessage(in, field, i), found);
    }
  }
}

// The message of the example that sets the field, or else the first one that could.
Message* MessageWith(const FieldDescriptor* field, model::Network* network) {
  std::vector<Message*> found;
  CollectMessages(field->containing_type(), network, &found);
  const auto sets = std::find_if(found.begin(), found.end(), [&](const Message* message) {
    return field->is_repeated() ? message->GetReflection()->FieldSize(*message, field) > 0
                                : message->GetReflection()->HasField(*message, field);
  });
  if (sets != found.end()) return *sets;
  return found.empty() ? nullptr : found.front();
}

// Whatever the kind of field, the text format knows how to read it.
void SetField(const FieldDescriptor* field, const std::string& value, Message* message) {
  message->GetReflection()->ClearField(message, field);
  const bool braces = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const std::string text =
      std::string(field->name()) + (braces ? " { " + value + " }" : ": " + value);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, message)) << text;
}

// Everything that a step makes: the weights before it, gradients, sums, running statistics.
std::vector<float> AfterAStep(const model::Network& network) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend(1);
  constexpr int kBatch = 3;
  const std::unique_ptr<Net> net = Net::Make(network, kBatch, backend.get()).value();
  const ParameterLayout layout = ParameterLayout::Make(net->tensors()).value();
  std::vector<float> weights(layout.size());
  std::vector<float> gradients(layout.size());
  EXPECT_TRUE(net->InitialWeights(1, layout, weights).ok());
  EXPECT_TRUE(net->Bind(layout, weights.data(), gradients.data()).ok());
  Rng rng(7, RngPurpose::kTest);
  std::vector<float> inputs(static_cast<size_t>(kBatch * net->input().size()));
  for (float& x : inputs) x = rng.NextUniform();
  const std::vector<int32_t> labels = {0, 1, 2};
  std::vector<float> all;
  for (const bool train : {true, false}) {
    const Numbers batch = {kBatch, inputs, labels};
    EXPECT_TRUE(batch.LoadInto(net.get()).ok());
    backend->SetStep({});
    train ? net->Train() : net->Evaluate();
    all.push_back(static_cast<float>(net->TakeSums().value()[0]));
  }
  all.insert(all.end(), weights.begin(), weights.end());
  all.insert(all.end(), gradients.begin(), gradients.end());
  return all;
}

TEST(NetworksPage, HasEveryLayerLossAndInitialiserAndNoOther) {
  std::vector<std::string> layers, losses, initialisers, kinds;
  for (const LayerKind& kind : LayerKinds()) layers.emplace_back(kind.name);
  for (const LossKind& kind : LossKinds()) losses.emplace_back(kind.name);
  const auto* initialiser = model::Initialiser::descriptor();
  for (int i = 0; i < initialiser->field_count(); ++i) {
    initialisers.emplace_back(initialiser->field(i)->name());
  }
  EXPECT_THAT(NamesIn("Layers"), ElementsAreArray(layers));
  EXPECT_THAT(NamesIn("Losses"), ElementsAreArray(losses));
  EXPECT_THAT(NamesIn("Initialisers"), ElementsAreArray(initialisers));
  EXPECT_THAT(NamesIn("The file"), testing::ElementsAre("network", "factors", "input", "layer"));
}

TEST(NetworksPage, TablesHaveEveryFieldAndNoOther) {
  for (const NetworksSection& section : Page()) {
    if (section.name.empty()) continue;
    const Descriptor* message = MessageOf(section);
    ASSERT_NE(message, nullptr) << section.name;
    std::vector<std::string> fields, rows;
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor* field = message->field(i);
      if (field->real_containing_oneof() == nullptr) fields.emplace_back(field->name());
    }
    for (const FieldRow& row : section.rows) rows.push_back(row.field);
    EXPECT_THAT(rows, ElementsAreArray(fields)) << section.name;
  }
}

TEST(NetworksPage, ExamplesHaveTheShapesThatTheirCommentsSay) {
  int examples = 0;
  for (const NetworksSection& section : Page()) {
    if (section.example.empty()) {
      EXPECT_TRUE(section.name.empty() || section.chapter == "The file") << section.name;
      continue;
    }
    ++examples;
    Result<Graph> plan = PlanNetwork(ExampleOf(section));
    ASSERT_TRUE(plan.ok()) << section.name << ": " << plan.status().message();
    const bool whole = section.has_loss();
    std::vector<std::string> shapes;
    for (const Node& node : plan->nodes) {
      std::string inputs;
      for (const int input : node.inputs) {
        inputs += (inputs.empty() ? "" : ",") + plan->values[input].shape.ToString();
      }
      shapes.push_back(inputs + " -> " + plan->values[node.outputs[0]].shape.ToString());
    }
    if (!whole) shapes.pop_back();  // the end that network() adds
    if (whole && plan->target().classes > 0) {
      shapes.push_back(std::to_string(plan->target().classes) + " classes");
    } else if (whole) {
      shapes.push_back(ExtentsText(plan->target().extents) + " numbers");
    }
    EXPECT_THAT(section.comments(), ElementsAreArray(shapes)) << section.name;
    const std::string kind = section.name.empty() ? "convolution" : section.name;
    EXPECT_THAT(section.example, HasSubstr(kind + " {")) << "an example of something else";
  }
  EXPECT_EQ(examples, 4 + LayerKinds().size() + LossKinds().size() +
                          model::Initialiser::descriptor()->field_count());
}

TEST(NetworksPage, WhatIsRequiredIsRefusedWhereItIsMissing) {
  ForEachRow([](const NetworksSection& section, const FieldRow& row, const FieldDescriptor* field) {
    if (row.fallback != "required") return;
    model::Network network = ExampleOf(section);
    Message* message = MessageWith(field, &network);
    ASSERT_NE(message, nullptr);
    message->GetReflection()->ClearField(message, field);
    EXPECT_FALSE(PlanNetwork(network).ok());
  });
}

TEST(NetworksPage, DefaultsAreWhatAFieldThatIsLeftOutMeans) {
  ForEachRow([](const NetworksSection& section, const FieldRow& row, const FieldDescriptor* field) {
    if (row.fallback == "required" || row.fallback == "none") return;
    model::Network with = ExampleOf(section);
    model::Network without = with;
    Message* message = MessageWith(field, &with);
    ASSERT_NE(message, nullptr);
    std::string value = row.fallback;
    if (value.starts_with("as ")) {
      const FieldDescriptor* other = message->GetDescriptor()->FindFieldByName(value.substr(3));
      ASSERT_NE(other, nullptr) << value;
      value = std::to_string(message->GetReflection()->GetInt32(*message, other));
    }
    SetField(field, value, message);
    message = MessageWith(field, &without);
    message->GetReflection()->ClearField(message, field);
    ASSERT_TRUE(PlanNetwork(without).ok()) << "it is required";
    EXPECT_EQ(AfterAStep(with), AfterAStep(without)) << row.fallback;
  });
}

TEST(NetworksPage, WhatLiesOutsideOfWhatIsAllowedIsRefused) {
  // "1 .. 64", "0 .. below 1", "0 .. below kernel", "at least 1"
  static const std::regex kRange(R"((?:at least )?(\d+)(?: \.\. (below )?(\w+))?)");
  int limits = 0;
  ForEachRow(
      [&](const NetworksSection& section, const FieldRow& row, const FieldDescriptor* field) {
        std::smatch parts;
        if (!std::regex_match(row.allowed, parts, kRange)) return;
        model::Network network = ExampleOf(section);
        Message* message = MessageWith(field, &network);
        ASSERT_NE(message, nullptr);
        std::vector<int> outside = {std::min(-1, std::stoi(parts[1]) - 1)};
        if (parts[3].matched) {
          const FieldDescriptor* other = message->GetDescriptor()->FindFieldByName(parts[3]);
          const int high = other == nullptr ? std::stoi(parts[3])
                                            : message->GetReflection()->GetInt32(*message, other);
          outside.push_back(parts[2].matched ? high : high + 1);
        }
        for (const int value : outside) {
          SetField(field, std::to_string(value), message);
          EXPECT_THAT(PlanNetwork(network).status().message(), HasSubstr(row.field)) << value;
          ++limits;
        }
      });
  EXPECT_GE(limits, 25);
}

}  // namespace
}  // namespace kumo
