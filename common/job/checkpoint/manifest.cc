// The manifest: its text form, and what may stand in one.

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "common/base/crc32c.h"
#include "common/job/checkpoint/checkpoint.h"
#include "common/job/protocol.h"

namespace kumo {
namespace {

constexpr char kCrcPrefix[] = "# crc32c ";

std::string CrcLine(std::string_view text) {
  char line[32];
  std::snprintf(line, sizeof(line), "%s%08" PRIx32 "\n", kCrcPrefix, Crc32c(AsBytes(text)));
  return line;
}

// Keeps the first error for our message; the default would print it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " +
            message;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool PlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// What a parsed manifest must fulfil for the folder `name`; "" when it does.
std::string WrongWith(const checkpoint::Manifest& manifest, const std::string& name) {
  if (manifest.version() < 0 || CheckpointName(manifest.version()) != name ||
      manifest.name() != name) {
    return "it is that of '" + manifest.name() + "', version " + std::to_string(manifest.version());
  }
  if (manifest.generation() > kLastGeneration) {
    return "no job has come to generation " + std::to_string(manifest.generation());
  }
  if (manifest.files().empty()) return "it names no files";
  for (const checkpoint::File& file : manifest.files()) {
    if (!PlainName(file.name())) return "'" + file.name() + "' is not a file's name";
  }
  return "";
}

}  // namespace

Status WriteManifest(FileSystem& files, const std::string& folder,
                     const checkpoint::Manifest& manifest) {
  const std::string name = CheckpointName(manifest.version());
  checkpoint::Manifest named = manifest;
  named.set_name(name);
  const std::string wrong = WrongWith(named, name);
  if (!wrong.empty()) return Internal("no manifest of " + name + " is written: " + wrong);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(named, &text)) {
    return Internal("protobuf cannot print the manifest of " + name);
  }
  text += CrcLine(text);
  const std::string path = JoinPath(JoinPath(folder, name), "MANIFEST");
  return WriteFileAtomically(files, path, text).WithContext("saving checkpoint " + name);
}

Result<checkpoint::Manifest> ReadManifest(FileSystem& files, const std::string& folder,
                                          const std::string& name) {
  const std::string path = JoinPath(JoinPath(folder, name), "MANIFEST");
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  if (file->size() > kManifestLimitBytes) {
    return DataLoss(path + " is not a manifest: it is " + std::to_string(file->size()) +
                    " bytes long");
  }
  std::string text(file->size(), '\0');
  KUMO_RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span<char>(text))));
  return ParseManifest(text, path, name);
}

Result<checkpoint::Manifest> ParseManifest(const std::string& text, const std::string& path,
                                           const std::string& name) {
  const size_t crc_line = text.rfind(kCrcPrefix);
  if (crc_line == std::string::npos ||
      text.substr(crc_line) != CrcLine(std::string_view(text).substr(0, crc_line))) {
    return DataLoss(path + " is damaged: its checksum line is wrong or missing");
  }
  checkpoint::Manifest manifest;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &manifest)) {
    return DataLoss(path + " is not a manifest that this program reads: " + error.text());
  }
  const std::string wrong = WrongWith(manifest, name);
  if (!wrong.empty()) return DataLoss(path + " is not this checkpoint's manifest: " + wrong);
  return manifest;
}

}  // namespace kumo
