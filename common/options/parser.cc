#include "common/options/parser.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/options/nearest.h"

namespace kumo {
namespace {

constexpr std::streamsize kLongestFile = 1 << 20;

// Reads settings one by one into a LoadedExperiment.
class Reader {
 public:
  Reader(const OptionTable* table, LoadedExperiment* loaded) : table_(table), loaded_(loaded) {}

  // `where` is what errors begin with.
  void Set(const std::string& key, const std::string& value, const std::string& where,
           bool replaces) {
    const Option* option = table_->Find(key);
    if (option == nullptr) {
      Problem(where, "unknown key " + key + DidYouMean(key, table_->keys()));
      return;
    }
    const auto before = loaded_->origins.find(key);
    if (before != loaded_->origins.end() && !replaces) {
      Problem(where, key + " is given twice, first in " + before->second);
      return;
    }
    const Status status = option->read(value, &loaded_->experiment);
    if (!status.ok()) Problem(where, key + " = " + value + ": " + status.message());
    loaded_->origins[key] = where;
  }

  void Section(const std::string& name, const std::string& where) {
    const std::vector<std::string>& known = table_->sections();
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    Problem(where, "unknown section [" + name + "]" + DidYouMean(name, known));
  }

  void Problem(const std::string& where, const std::string& what) {
    loaded_->problems.push_back(where + ": " + what);
  }

 private:
  const OptionTable* table_;
  LoadedExperiment* loaded_;
};

Result<std::string> ReadSmallFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return NotFound(path + ": is a directory; name an experiment file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return NotFound(path + ": the experiment file cannot be read: " + std::strerror(errno));
  }
  std::string text(kLongestFile + 1, '\0');
  file.read(text.data(), kLongestFile + 1);
  if (file.gcount() > kLongestFile) {
    return InvalidArgument(path + ": has more than 1 MiB; that is no experiment file");
  }
  text.resize(file.gcount());
  return text;
}

// Boost reads each line by itself, behind its section's header, because its errors and results do
// not tell line numbers.
void ReadLine(const std::string& line, const std::string& section, const std::string& where,
              Reader* reader) {
  namespace po = boost::program_options;
  const std::string prefix = section.empty() ? "" : "[" + section + "]\n";
  std::istringstream stream(prefix + line + "\n");
  try {
    const auto parsed =
        po::parse_config_file(stream, po::options_description(), /*allow_unregistered=*/true);
    for (const auto& option : parsed.options) {
      reader->Set(option.string_key, option.value.empty() ? "" : option.value.front(), where,
                  /*replaces=*/false);
    }
  } catch (const po::error&) {
    reader->Problem(
        where, "'" + std::string(Trimmed(line)) + "' is neither a [section] nor `key = value`");
  }
}

void ReadText(const std::string& text, const std::string& path, Reader* reader) {
  std::istringstream lines(text);
  std::string section, line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = path + ":" + std::to_string(number);
    const std::string_view content = Trimmed(std::string_view(line).substr(0, line.find('#')));
    if (content.empty()) continue;
    if (content.front() == '[' && content.back() == ']') {
      section = std::string(content.substr(1, content.size() - 2));
      reader->Section(section, where);
    } else {
      ReadLine(line, section, where, reader);
    }
  }
}

void ReadCommandLine(const std::vector<std::string>& sets, Reader* reader) {
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos) {
      reader->Problem("--set " + set, "has no '='; write --set section.key=value");
      continue;
    }
    const std::string key(Trimmed(std::string_view(set).substr(0, equals)));
    const std::string value(Trimmed(std::string_view(set).substr(equals + 1)));
    reader->Set(key, value, "--set " + key, /*replaces=*/true);
  }
}

// Where the path stands in the file, it is relative to the file's folder.
void ResolvePath(const std::string& experiment_path, const std::string& key, const Origins& origins,
                 std::string* path) {
  const auto origin = origins.find(key);
  if (origin == origins.end() || origin->second.starts_with("--set ") || path->empty()) return;
  const std::filesystem::path folder = std::filesystem::path(experiment_path).parent_path();
  *path = (folder / *path).lexically_normal().string();
}

// Letters, digits, '-' and '_' of the file's stem.
std::string NameOf(const std::string& experiment_path) {
  std::string name = std::filesystem::path(experiment_path).stem().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  }
  return name.empty() ? "job" : name;
}

void FillInDefaults(const std::string& path, const std::string& data_directory,
                    LoadedExperiment* loaded) {
  Experiment& experiment = loaded->experiment;
  if (experiment.job.name.empty()) experiment.job.name = NameOf(path);
  if (experiment.data.directory.empty()) experiment.data.directory = data_directory;
  if (experiment.output.directory.empty()) {
    experiment.output.directory = "out/" + experiment.job.name;
  }
  ResolvePath(path, "network.file", loaded->origins, &experiment.network.file);
  ResolvePath(path, "network.initial_weights", loaded->origins,
              &experiment.network.initial_weights);
}

}  // namespace

LoadedExperiment LoadExperiment(const std::string& path, const std::vector<std::string>& sets,
                                const std::string& data_directory) {
  const OptionTable table;
  LoadedExperiment loaded;
  Reader reader(&table, &loaded);
  const Result<std::string> text = ReadSmallFile(path);
  if (!text.ok()) {
    loaded.problems.push_back(text.status().message());
    return loaded;
  }
  ReadText(text.value(), path, &reader);
  ReadCommandLine(sets, &reader);
  FillInDefaults(path, data_directory, &loaded);
  if (loaded.problems.empty()) {
    CrossCheck(loaded.experiment, loaded.origins, &loaded.problems, &loaded.notes);
  }
  return loaded;
}

Result<Experiment> ParseExperiment(const std::string& path, const std::vector<std::string>& sets,
                                   const std::string& data_directory) {
  const Result<std::string> readable = ReadSmallFile(path);
  if (!readable.ok()) return readable.status();
  LoadedExperiment loaded = LoadExperiment(path, sets, data_directory);
  if (!loaded.problems.empty()) return InvalidArgument(loaded.problems.front());
  return std::move(loaded.experiment);
}

}  // namespace kumo
