#include "models/network.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
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
constexpr std::string_view kVocabulary = "vocabulary";

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

// Places of a word in a text protobuf where it is a value: outside of comments and strings, and not
// before ':' or '{', as a field's name.
std::vector<size_t> PlacesOfValue(std::string_view text, std::string_view word) {
  std::vector<size_t> places;
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      for (++at; at < text.size() && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
      ++at;
    } else if (is_of_name(c)) {
      size_t end = at;
      while (end < text.size() && is_of_name(text[end])) ++end;
      const size_t next = std::min(text.find_first_not_of(" \t\r\n", end), text.size());
      const bool is_field = next < text.size() && (text[next] == ':' || text[next] == '{');
      if (text.substr(at, end - at) == word && !is_field) places.push_back(at);
      at = end;
    } else {
      ++at;
    }
  }
  return places;
}

// Writes the number over the word `vocabulary`. The number is never longer than the word, and
// blanks keep the places of what follows. InvalidArgument if the word stands for nothing.
Status ReplaceVocabulary(const std::string& name, int64_t vocabulary, std::string* text) {
  for (const size_t at : PlacesOfValue(*text, kVocabulary)) {
    if (vocabulary == kNoVocabulary) {
      const auto line =
          1 + std::count(text->begin(), text->begin() + static_cast<int64_t>(at), '\n');
      return InvalidArgument(name + ":" + std::to_string(line) +
                             ": the word vocabulary stands for the number of tokens of a text, but "
                             "the data are no text: write a number, or set data.reader = text");
    }
    std::string number = std::to_string(vocabulary);
    number.resize(std::max(number.size(), kVocabulary.size()), ' ');
    text->replace(at, kVocabulary.size(), number);
  }
  return OkStatus();
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
                                    int64_t vocabulary) {
  std::string numbers = text;
  KUMO_RETURN_IF_ERROR(ReplaceVocabulary(name, vocabulary, &numbers));
  model::Network network;
  FirstError error(name);
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(numbers, &network)) {
    return InvalidArgument(error.message().empty() ? name + ": not a text protobuf"
                                                   : error.message());
  }
  int layer_at_fault = -1;
  const Status built = BuildGraph(network, &layer_at_fault).status();
  KUMO_RETURN_IF_ERROR(built.WithContext(Place(name, places, layer_at_fault)));
  return network;
}

bool NeedsVocabulary(const std::string& path) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  return text.ok() && !PlacesOfValue(*text, kVocabulary).empty();
}

std::string NetworkText(const model::Network& network) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  CHECK(printer.PrintToString(network, &text));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

Result<model::Network> LoadNetwork(const std::string& path, int64_t vocabulary) {
  const Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (text.ok()) return ParseNetwork(*text, path, vocabulary);
  return Status(text.status().code(), path + ": " + text.status().message() +
                                          "; network.file names the network's text protobuf");
}

}  // namespace kumo
