#include "cli/stage/stage_record.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/crc32c.h"

namespace kumo {
namespace {

// Some ten million files.
constexpr uint64_t kLongestRecord = uint64_t{1} << 30;

std::string Hex(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08" PRIx32, number);
  return text;
}

std::string Line(const StagedFile& file) {
  const std::string rest = Hex(file.crc32c) + " " + std::to_string(file.source.size) + " " +
                           std::to_string(file.source.modified_ns) + " " + file.source.path;
  return Hex(Crc32c(AsBytes(rest))) + " " + rest + "\n";
}

// Takes a number and the space behind it off the text's beginning.
template <typename Number>
bool TakeNumber(std::string_view* text, int base, Number* number) {
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), *number, base);
  if (parsed.ec != std::errc()) return false;
  text->remove_prefix(parsed.ptr - text->data());
  if (!text->starts_with(' ')) return false;
  text->remove_prefix(1);
  return true;
}

std::optional<StagedFile> ParseLine(std::string_view line) {
  uint32_t crc = 0;
  StagedFile file;
  if (!TakeNumber(&line, 16, &crc) || Crc32c(AsBytes(line)) != crc) return std::nullopt;
  if (!TakeNumber(&line, 16, &file.crc32c) || !TakeNumber(&line, 10, &file.source.size) ||
      !TakeNumber(&line, 10, &file.source.modified_ns) || line.empty()) {
    return std::nullopt;
  }
  file.source.path = line;
  return file;
}

}  // namespace

Result<StageRecord> StageRecord::Open(FileSystem* files, std::string path) {
  StageRecord record(files, std::move(path));
  if (!files->Exists(record.path_)) return record;
  KUMO_ASSIGN_OR_RETURN(const std::string text,
                        ReadWholeFile(*files, record.path_, kLongestRecord));
  std::string_view rest = text;
  for (size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    std::optional<StagedFile> file = ParseLine(rest.substr(0, end));
    if (file) record.staged_[file->source.path] = std::move(*file);
  }
  return record;
}

Status StageRecord::Add(StagedFile file) {
  // What was torn must not run into the line.
  std::string line = Line(file);
  if (lines_ == nullptr) {
    KUMO_ASSIGN_OR_RETURN(lines_, files_->OpenForAppending(path_));
    line.insert(0, "\n");
  }
  staged_[file.source.path] = std::move(file);
  return lines_->Append(AsBytes(line));
}

Status StageRecord::Rewrite() {
  lines_.reset();
  std::string text;
  for (const auto& [path, file] : staged_) text += Line(file);
  return WriteFileAtomically(*files_, path_, text);
}

}  // namespace kumo
