#include "models/network.h"

#include <cstdint>
#include <vector>

#include <glog/logging.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "common/base/file.h"
#include "models/field_advice.h"
#include "models/graph/build_graph.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestFileMib = 16;

// Keeps the first error, with its place counted from 1 as editors do.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& name) : name_(name) {}

  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!message_.empty()) return;
    message_ = name_;
    if (line >= 0) message_ += ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1);
    message_ += ": " + Explained(message);
  }
  const std::string& message() const { return message_; }

 private:
  std::string name_;
  std::string message_;
};

// "net.pbtxt:12", the first line of the layer; only the file's name for layer -1.
std::string Place(const std::string& name,
                  const google::protobuf::TextFormat::ParseInfoTree& places, int layer) {
  if (layer < 0) return name;
  const google::protobuf::FieldDescriptor* field =
      model::Network::descriptor()->FindFieldByNumber(model::Network::kLayersFieldNumber);
  return name + ":" + std::to_string(places.GetLocation(field, layer).line + 1);
}

}  // namespace

std::string NetworkFileText(const model::Network& network,
                            const std::vector<std::string>& comments) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  const auto add = [&](const char* field, const google::protobuf::Message& message) {
    std::string line;
    CHECK(printer.PrintToString(message, &line));
    while (line.ends_with(' ')) line.pop_back();
    for (size_t at = line.find("{ }"); at != line.npos; at = line.find("{ }", at)) {
      line.erase(at + 1, 1);  // no name has braces
    }
    text += std::string(field) + " { " + line + " }\n";
  };
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text += "name: \"" + network.name() + "\"\n";
  for (const model::Input& input : network.input()) add("input", input);
  for (const std::string& output : network.outputs()) text += "outputs: \"" + output + "\"\n";
  for (const model::Layer& layer : network.layers()) add("layers", layer);
  return text;
}

Result<Graph> PlanNetwork(const model::Network& network) {
  int layer_at_fault = -1;  // which the message names
  return BuildGraph(network, &layer_at_fault);
}

Result<model::Network> ParseNetwork(const std::string& text, const std::string& name,
                                    const DataNumbers& numbers) {
  KUMO_ASSIGN_OR_RETURN(const std::string whole, WithNumbers(text, name, numbers));
  model::Network network;
  FirstError error(name);
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(whole, &network)) {
    return InvalidArgument(error.message().empty() ? name + ": not a text protobuf"
                                                   : error.message());
  }
  int layer_at_fault = -1;
  const Status built = BuildGraph(network, &layer_at_fault).status();
  KUMO_RETURN_IF_ERROR(built.WithContext(Place(name, places, layer_at_fault)));
  return network;
}

bool FileNeedsVocabulary(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  return text.ok() && NeedsVocabulary(*text);
}

std::string NetworkText(const model::Network& network) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  CHECK(printer.PrintToString(network, &text));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

Result<model::Network> LoadNetwork(const std::string& path, const DataNumbers& numbers) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (text.ok()) return ParseNetwork(*text, path, numbers);
  return Status(text.status().code(), path + ": " + text.status().message() +
                                          "; network.file names the network's text protobuf");
}

}  // namespace kumo
