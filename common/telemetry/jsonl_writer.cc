#include "common/telemetry/jsonl_writer.h"

#include <algorithm>
#include <vector>

#include "common/base/text.h"

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

// Scans a file in pieces, with lines of any length, and keeps the complete lines about rounds up to
// last_round.
class LineFilter {
 public:
  explicit LineFilter(int64_t last_round) : last_round_(last_round) {}

  // The kept lines that are completed by `piece`, the next bytes of the file.
  std::string Next(std::string_view piece) {
    std::string kept;
    for (size_t end; (end = piece.find('\n')) != std::string_view::npos;) {
      Collect(piece.substr(0, end));
      if (!too_long_ && Keeps(line_)) kept += line_ + "\n";
      line_.clear();
      too_long_ = false;
      piece.remove_prefix(end + 1);
    }
    Collect(piece);
    return kept;
  }

 private:
  void Collect(std::string_view part) {
    too_long_ = too_long_ || line_.size() + part.size() > kLongestLogLine;
    if (!too_long_) line_ += part;
  }
  bool Keeps(std::string_view line) const {
    const int64_t round = RoundOf(line);
    return round >= 0 && round <= last_round_;
  }

  const int64_t last_round_;
  std::string line_;  // incomplete line
  bool too_long_ = false;
};

// Calls take(kept) for each piece of the log with the lines that are kept.
template <typename Take>
Status FilterLines(ReadableFile* log, int64_t last_round, const Take& take) {
  LineFilter filter(last_round);
  std::vector<char> piece(kLongestLogLine);
  for (uint64_t at = 0; at < log->size();) {
    const size_t n = std::min<uint64_t>(piece.size(), log->size() - at);
    KUMO_RETURN_IF_ERROR(log->Read(at, std::as_writable_bytes(std::span(piece).first(n))));
    at += n;
    KUMO_RETURN_IF_ERROR(take(filter.Next(std::string_view(piece.data(), n))));
  }
  return OkStatus();
}

// Rewrites the log without the lines to remove; leaves it alone if there are none, so that a disk
// that is almost full need not take a second copy.
Status DropLines(FileSystem& files, const std::string& path, int64_t last_round) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> log, files.OpenForReading(path));
  uint64_t kept_bytes = 0;
  KUMO_RETURN_IF_ERROR(FilterLines(log.get(), last_round, [&](const std::string& kept) {
    kept_bytes += kept.size();
    return OkStatus();
  }));
  if (kept_bytes == log->size()) return OkStatus();
  KUMO_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> rest, AtomicFile::Create(files, path));
  KUMO_RETURN_IF_ERROR(FilterLines(
      log.get(), last_round, [&](const std::string& kept) { return rest->Append(AsBytes(kept)); }));
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
