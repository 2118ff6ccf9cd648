#include "common/settings/parser.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "common/base/file.h"
#include "common/base/text.h"
#include "common/settings/key_advice.h"

namespace kumo {
namespace {

constexpr uint64_t kLongestFileMib = 1;
// Files that include each other many times over could be endless without a cycle.
constexpr int kMostFiles = 100;
constexpr int kCommandLine = -1;  // as a layer
constexpr char kInclude[] = "include";

std::string FolderOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

// A `path` in a file of `folder`, relative to the working directory.
std::string From(const std::string& folder, const std::string& path) {
  return NormalPath((std::filesystem::path(folder) / path).string());
}

std::string Identity(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

// Letters, digits, '-' and '_' of the file's stem.
std::string NameOf(const std::string& experiment_path) {
  std::string name = std::filesystem::path(experiment_path).stem().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  }
  return name.empty() ? "job" : name;
}

// The cache folder of the XDG Base Directory Specification, which ignores a relative one; ""
// without a home.
std::string UsersCache(const Variables& variables) {
  const std::string caches = ValueOf(variables, "XDG_CACHE_HOME");
  if (caches.starts_with('/')) return caches + "/kumo";
  const std::string home = ValueOf(variables, "HOME");
  return home.starts_with('/') ? home + "/.cache/kumo" : "";
}

}  // namespace

void FillInDataFolders(const Variables& variables, Experiment::Data* data) {
  if (data->directory.empty()) data->directory = ValueOf(variables, "KUMO_DATA");
  if (data->cache.empty()) data->cache = UsersCache(variables);
}

namespace {

void FillInDefaults(const std::string& path, const Variables& variables, const Origins& origins,
                    Experiment* experiment) {
  if (experiment->job.name.empty()) experiment->job.name = NameOf(path);
  FillInDataFolders(variables, &experiment->data);
  if (experiment->output.directory.empty()) {
    experiment->output.directory = "out/" + experiment->job.name;
  }
  const auto set = [&](const char* key) { return origins.contains(std::string_view(key)); };
  if (set("data.validation_share") && !set("data.validation_images") &&
      !TraitsOf(experiment->data.reader).one_text) {
    experiment->data.validation_images.clear();
  }
}

}  // namespace

Result<std::string> ReadExperimentFile(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kLongestFileMib);
  if (text.ok()) return text;
  const std::string& what = text.status().message();
  if (text.status().code() == StatusCode::kInvalidArgument) {
    return InvalidArgument(path + ": " + what + "; name an experiment file");
  }
  const bool bare = path.find('/') == std::string::npos;
  return NotFound(path + ": the experiment file cannot be read: " + what +
                  (bare ? "; kumo new --list shows the experiments that come with Kumo" : ""));
}

void ExperimentReader::ReadFile(const std::string& path) {
  const Result<std::string> text = ReadExperimentFile(path);
  if (text.ok()) {
    ReadText(*text, path);
  } else {
    loaded_.problems.push_back(text.status().message());
  }
}

void ExperimentReader::ReadText(const std::string& text, const std::string& path) {
  const std::vector<ConfigLine> lines = ReadConfigLines(text);
  const auto where = [&](const ConfigLine& line) {
    return path + ":" + std::to_string(line.number);
  };
  open_.push_back({Identity(path), ""});
  for (const ConfigLine& line : lines) {
    if (line.name == kInclude && line.kind == ConfigLine::Kind::kSetting) {
      Include(line.value, path, where(line));
    }
  }
  open_.pop_back();
  const Source source{layers_++, FolderOf(path)};
  for (const ConfigLine& line : lines) {
    if (line.kind == ConfigLine::Kind::kProblem) {
      Problem(where(line), line.value);
    } else if (line.kind == ConfigLine::Kind::kSection) {
      Section(line.name, where(line));
    } else if (line.name != kInclude) {
      Set(line.name, line.value, where(line), source);
    }
  }
}

void ExperimentReader::Include(const std::string& value, const std::string& path,
                               const std::string& where) {
  const std::string context = where + ": include = " + value;
  const Result<std::string> expanded = Expanded(value, variables_);
  if (!expanded.ok() || expanded->empty()) {
    return Problem(context, expanded.ok() ? "names no file; write include = FILE"
                                          : expanded.status().message());
  }
  const std::string file = From(FolderOf(path), *expanded);
  open_.back().includes = where + " includes " + file;
  const std::string identity = Identity(file);
  const auto same = [&](const OpenFile& open) { return open.identity == identity; };
  if (const auto first = std::find_if(open_.begin(), open_.end(), same); first != open_.end()) {
    std::string circle;
    for (auto it = first; it != open_.end(); ++it) {
      circle += (circle.empty() ? "" : ", ") + it->includes;
    }
    return Problem(context, "the files include each other in a circle: " + circle);
  }
  if (layers_ + static_cast<int>(open_.size()) >= kMostFiles) {
    return Problem(context, "more than " + std::to_string(kMostFiles) +
                                " files are included; merge some of them");
  }
  const Result<std::string> text = ReadExperimentFile(file);
  if (!text.ok()) return Problem(context, text.status().message());
  ReadText(*text, file);
}

void ExperimentReader::ReadCommandLine(const std::vector<std::string>& sets) {
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos) {
      Problem("--set " + set, "has no '='; write --set section.key=value");
      continue;
    }
    const std::string key(Trimmed(std::string_view(set).substr(0, equals)));
    const std::string where = "--set " + key;
    const Result<std::string> value = Unquoted(Trimmed(std::string_view(set).substr(equals + 1)));
    if (value.ok()) {
      Set(key, *value, where, {kCommandLine, ""});
    } else {
      Problem(where, value.status().message());
    }
  }
}

void ExperimentReader::Set(const std::string& name, const std::string& value,
                           const std::string& where, const Source& source) {
  const Option* option = table_.Find(name);
  if (option == nullptr) {
    return Problem(where, "unknown key " + name + (Advises() ? KeyAdvice(name) : ""));
  }
  const std::string key(option->key);
  if (name != key) {
    loaded_.notes.push_back(where + ": " + name + " is the old name of " + key +
                            ", and is still read; write " + key);
  }
  const auto before = sources_.find(key);
  if (before != sources_.end() && before->second.layer == source.layer &&
      source.layer != kCommandLine) {
    return Problem(
        where, key + " is set twice, first in " + loaded_.origins[key] + "; remove one of them");
  }
  const Status status = option->read(value, &loaded_.experiment);
  if (!status.ok()) Problem(where, key + " = " + value + ": " + status.message());
  loaded_.origins[key] = where;
  sources_[key] = source;
}

bool ExperimentReader::Advises() const { return loaded_.problems.size() < kMostAdvice; }

void ExperimentReader::Section(const std::string& name, const std::string& where) {
  const std::vector<std::string>& known = table_.sections();
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  Problem(where, "unknown section [" + name + "]" + (Advises() ? SectionAdvice(name) : ""));
}

void ExperimentReader::ResolvePaths() {
  for (const auto& [key, source] : sources_) {
    const Option& option = *table_.Find(key);
    const std::string value = option.write(loaded_.experiment);
    if (option.base == PathBase::kNone || value.empty()) continue;
    Result<std::string> path = Expanded(value, variables_);
    Status status = path.status();
    if (status.ok()) {
      const bool beside = option.base == PathBase::kExperimentFile && !source.folder.empty();
      status = option.read(beside ? From(source.folder, *path) : *path, &loaded_.experiment);
    }
    if (!status.ok()) {
      Problem(loaded_.origins[key], key + " = " + value + ": " + status.message());
    }
  }
}

LoadedExperiment LoadExperiment(const std::string& path, const std::vector<std::string>& sets,
                                const Variables& variables) {
  LoadedExperiment loaded;
  ExperimentReader reader(&variables, &loaded);
  reader.ReadFile(path);
  reader.ReadCommandLine(sets);
  reader.ResolvePaths();
  FillInDefaults(path, variables, loaded.origins, &loaded.experiment);
  if (loaded.problems.empty()) {
    CrossCheck(loaded.experiment, loaded.origins, &loaded.problems, &loaded.notes);
  }
  return loaded;
}

Result<Experiment> ParseExperiment(const std::string& path, const std::vector<std::string>& sets,
                                   const Variables& variables) {
  const Result<std::string> readable = ReadExperimentFile(path);
  if (!readable.ok()) return readable.status();
  LoadedExperiment loaded = LoadExperiment(path, sets, variables);
  if (!loaded.problems.empty()) return InvalidArgument(loaded.problems.front());
  return std::move(loaded.experiment);
}

}  // namespace kumo
