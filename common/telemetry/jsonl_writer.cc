#include "common/telemetry/jsonl_writer.h"

#include <optional>
#include <string_view>

#include "common/base/text.h"
#include "common/telemetry/log_lines.h"

namespace kumo {
namespace {

constexpr std::string_view kLineStart = "{\"round\":";

// The round of a line without line end, or -1 if the line is damaged.
int64_t RoundOf(std::string_view line) {
  if (!line.starts_with(kLineStart) || !line.ends_with('}')) return -1;
  line.remove_prefix(kLineStart.size());
  const std::optional<int64_t> round = TakeNumber<int64_t>(&line);
  return round && (line.starts_with(',') || line.starts_with('}')) ? *round : -1;
}

// Whether the line is of a round up to last_round, and whole.
bool IsKept(std::string_view line, int64_t last_round) {
  const int64_t round = RoundOf(line);
  return round >= 0 && round <= last_round;
}

// Appends the lines that are kept, many at a time.
Status CopyKept(ReadableFile* log, int64_t last_round, AtomicFile* to) {
  std::string kept;
  KUMO_RETURN_IF_ERROR(ForEachLogLine(log, [&](const std::string& line) {
    if (IsKept(line, last_round)) kept += line + "\n";
    if (kept.size() < kLongestLogLine) return OkStatus();
    const Status appended = to->Append(AsBytes(kept));
    kept.clear();
    return appended;
  }));
  return to->Append(AsBytes(kept));
}

// Rewrites the log without the lines to remove; leaves it alone if there are none, so that a disk
// that is almost full need not take a second copy.
Status DropLines(FileSystem& files, const std::string& path, int64_t last_round) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> log, files.OpenForReading(path));
  uint64_t kept_bytes = 0;
  KUMO_RETURN_IF_ERROR(ForEachLogLine(log.get(), [&](const std::string& line) {
    if (IsKept(line, last_round)) kept_bytes += line.size() + 1;
    return OkStatus();
  }));
  if (kept_bytes == log->size()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> rest, AtomicFile::Create(files, path));
  KUMO_RETURN_IF_ERROR(CopyKept(log.get(), last_round, rest.get()));
  return rest->Commit();
}

}  // namespace

Result<std::unique_ptr<JsonlWriter>> JsonlWriter::Open(FileSystem& files, const std::string& path,
                                                       int64_t last_round) {
  if (files.Exists(path)) {
    KUMO_RETURN_IF_ERROR(DropLines(files, path, last_round));
  }
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.OpenForAppending(path));
  return std::unique_ptr<JsonlWriter>(new JsonlWriter(std::move(file)));
}

Status JsonlWriter::Write(int64_t round, const JsonFields& fields) {
  std::string line(kLineStart);
  line += std::to_string(round);
  if (!fields.text().empty()) line += "," + fields.text();
  line += "}\n";
  return file_->Append(AsBytes(line));
}

}  // namespace kumo
