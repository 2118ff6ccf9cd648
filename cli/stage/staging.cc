#include "cli/stage/staging.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/fnv.h"
#include "common/base/printable.h"
#include "common/base/text.h"
#include "common/base/thread_pool.h"

namespace kumo {

namespace {

constexpr char kRecord[] = "staged";
constexpr char kPartEnd[] = ".part";
constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kMostDamaged = 20;

std::string OwnFolder(const std::string& destination) {
  return JoinPath(destination, kStagingFolder);
}

// True if a folder has a file with this name and size.
bool HasFile(FileSystem& files, const std::string& path, uint64_t size) {
  const Result<std::unique_ptr<ReadableFile>> file = files.OpenForReading(path);
  return file.ok() && (*file)->size() == size;
}

// Long pieces for network file systems, which read ahead by megabytes.
constexpr uint64_t kPiece = uint64_t{4} << 20;

// Called with the number of bytes read; returns false to abort.
using OnBytes = std::function<bool(uint64_t bytes)>;
using OnPiece = std::function<Status(std::span<const std::byte> piece)>;

// Passes on a file's bytes [begin, end) in pieces.
Status ReadPieces(FileSystem& files, const std::string& path, uint64_t begin, uint64_t end,
                  const OnBytes& on_bytes, const OnPiece& on_piece) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  std::vector<std::byte> buffer(std::min(kPiece, end - begin));
  for (uint64_t at = begin; at < end;) {
    const std::span<std::byte> piece(buffer.data(), std::min(kPiece, end - at));
    KUMO_RETURN_IF_ERROR(file->Read(at, piece));
    KUMO_RETURN_IF_ERROR(on_piece(piece));
    at += piece.size();
    if (!on_bytes(piece.size())) return Aborted("stopped");
  }
  return OkStatus();
}

// The length of a partial copy; a longer file is of another source.
Result<uint64_t> LengthOfPart(FileSystem& files, const std::string& part, uint64_t size) {
  if (!files.Exists(part)) return uint64_t{0};
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenForReading(part));
  if (file->size() <= size) return file->size();
  KUMO_RETURN_IF_ERROR(files.RemoveFile(part));
  return uint64_t{0};
}

// The CRC-32C of a file's first `size` bytes. DataLoss if it is shorter; Aborted if `on_bytes`
// returns false.
Result<uint32_t> ChecksumOf(FileSystem& files, const std::string& path, uint64_t size,
                            const OnBytes& on_bytes) {
  uint32_t crc = 0;
  const auto add = [&](std::span<const std::byte> piece) {
    crc = ExtendCrc32c(crc, piece);
    return OkStatus();
  };
  KUMO_RETURN_IF_ERROR(ReadPieces(files, path, 0, size, on_bytes, add));
  return crc;
}

// Copies the first `size` bytes of `from` durably to `part`, where an interrupted copy resumes.
// Returns their CRC-32C, for which the contents of `part` are read again. `on_bytes` and Aborted as
// above; the errors of reading and writing files. Blocks; thread-safe, if no two calls write one
// file.
Result<uint32_t> CopyFile(FileSystem& files, const std::string& from, uint64_t size,
                          const std::string& part, const OnBytes& on_bytes) {
  KUMO_ASSIGN_OR_RETURN(const uint64_t begin, LengthOfPart(files, part, size));
  uint32_t crc = 0;
  if (begin > 0) {
    KUMO_ASSIGN_OR_RETURN(crc, ChecksumOf(files, part, begin, on_bytes));
  }
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, files.OpenForAppending(part));
  const auto append = [&](std::span<const std::byte> piece) {
    crc = ExtendCrc32c(crc, piece);
    return copy->Append(piece);
  };
  KUMO_RETURN_IF_ERROR(ReadPieces(files, from, begin, size, on_bytes, append));
  KUMO_RETURN_IF_ERROR(copy->Sync());
  KUMO_RETURN_IF_ERROR(copy->Close());
  return crc;
}

}  // namespace

Result<std::unique_ptr<Staging>> Staging::Plan(FileSystem* files, Source source,
                                               std::string destination, StagingOptions options) {
  KUMO_ASSIGN_OR_RETURN(StageRecord record,
                        StageRecord::Open(files, JoinPath(OwnFolder(destination), kRecord)));
  std::unique_ptr<Staging> staging(new Staging(files, std::move(source), std::move(destination),
                                               std::move(options), std::move(record)));
  KUMO_RETURN_IF_ERROR(staging->CheckRoom());
  return staging;
}

Staging::Staging(FileSystem* files, Source source, std::string destination, StagingOptions options,
                 StageRecord record)
    : files_(files),
      folder_(std::move(source.folder)),
      destination_(std::move(destination)),
      options_(std::move(options)),
      record_(std::move(record)) {
  std::map<std::string, StagedFile> staged = record_.files();
  for (SourceFile& file : source.files) {
    progress_.bytes += file.size;
    Task task{std::move(file), std::nullopt};
    const auto found = staged.find(task.file.path);
    if (found != staged.end()) {
      const bool same = found->second.source == task.file &&
                        HasFile(*files_, DestinationOf(task.file.path), task.file.size);
      if (same) task.crc32c = found->second.crc32c;
      staged.erase(found);
    }
    tasks_.push_back(std::move(task));
  }
  progress_.files = tasks_.size();
  for (const auto& [path, file] : staged) gone_.push_back(path);
}

std::string Staging::DestinationOf(const std::string& path) const {
  return JoinPath(destination_, path);
}

std::string Staging::PartOf(const SourceFile& file) const {
  Fnv1a hash;
  hash.Add(file.path);
  hash.Add(file.size);
  hash.Add(static_cast<uint64_t>(file.modified_ns));
  hash.Add(options_.boot);
  return JoinPath(OwnFolder(destination_), HexDigits(hash.value()) + kPartEnd);
}

Status Staging::CheckRoom() const {
  uint64_t needed = 0;
  for (const Task& task : tasks_) {
    if (task.crc32c) continue;
    needed += task.file.size;
    const Result<std::unique_ptr<ReadableFile>> part = files_->OpenForReading(PartOf(task.file));
    if (part.ok()) needed -= std::min(task.file.size, (*part)->size());
  }
  KUMO_ASSIGN_OR_RETURN(const uint64_t free, files_->FreeBytes(destination_));
  if (needed <= free) return OkStatus();
  return ResourceExhausted(destination_ + ": " + HumanBytes(needed) + " must be copied, but only " +
                           HumanBytes(free) + " are free; free some space, or use another disk");
}

// A former file that is now a folder, or the reverse, is in the way of the copies; other old files
// stay until all copies are complete.
Status Staging::MakeWay() {
  std::set<std::string> files;
  std::set<std::string> folders;
  const auto each_folder = [](const std::string& path, const auto& see) {
    for (size_t slash = path.rfind('/'); slash != path.npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      see(path.substr(0, slash));  // innermost first
    }
  };
  for (const Task& task : tasks_) {
    files.insert(task.file.path);
    each_folder(task.file.path, [&](std::string folder) { folders.insert(std::move(folder)); });
  }
  std::vector<std::string> left;
  for (const std::string& path : gone_) {
    bool in_the_way = folders.contains(path);
    each_folder(path, [&](const std::string& folder) { in_the_way |= files.contains(folder); });
    if (!in_the_way) {
      left.push_back(path);
      continue;
    }
    KUMO_RETURN_IF_ERROR(Remove(path));
    each_folder(path, [&](const std::string& folder) {
      if (!folders.contains(folder)) (void)files_->RemoveEmptyDirectory(DestinationOf(folder));
    });
  }
  if (left.size() == gone_.size()) return OkStatus();
  gone_ = std::move(left);
  // A later resume must not find files in place of folders.
  return record_.Rewrite();
}

std::string ProgressText(const StagingProgress& progress, double seconds) {
  const uint64_t moved = progress.copied_bytes + progress.read_bytes;
  const uint64_t done = moved + progress.unread_bytes;
  const double rate = seconds > 0 ? static_cast<double>(moved) / seconds : 0;
  std::string text = HumanBytes(done) + " of " + HumanBytes(progress.bytes) + ", " +
                     std::to_string(progress.copied_files + progress.kept_files) + " of " +
                     std::to_string(progress.files) + " files";
  if (rate <= 0) return text;
  const double left = progress.bytes > done ? static_cast<double>(progress.bytes - done) / rate : 0;
  return text + ", " + HumanBytes(static_cast<uint64_t>(rate)) + "/s, ETA " + HumanDuration(left);
}

Status Staging::Run(const std::function<bool(const StagingProgress&)>& tick) {
  {
    const MutexLock lock(mutex_);
    KUMO_RETURN_IF_ERROR(MakeWay());
  }
  {
    ThreadPool pool(options_.jobs);
    {
      const MutexLock lock(mutex_);
      working_ = pool.threads();
    }
    for (int i = 0; i < pool.threads(); ++i) pool.Submit([this] { Work(); });
    for (bool over = false; !over;) {
      {
        const MutexLock lock(mutex_);
        if (working_ > 0) ended_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kTick);
        over = working_ == 0;
      }
      if (!tick(progress())) stopping_ = true;
    }
  }
  const MutexLock lock(mutex_);
  KUMO_RETURN_IF_ERROR(failure_);
  if (stopping_) return Aborted("stopped");
  return CleanUp();
}

StagingProgress Staging::progress() const {
  const MutexLock lock(mutex_);
  return progress_;
}

void Staging::Work() {
  for (size_t i; !stopping_ && (i = next_++) < tasks_.size();) {
    const Status done = Do(tasks_[i]);
    if (done.ok()) continue;
    const MutexLock lock(mutex_);
    if (failure_.ok() && !stopping_) failure_ = done;
    stopping_ = true;
  }
  const MutexLock lock(mutex_);
  --working_;
  ended_.NotifyOne();
}

Status Staging::Do(const Task& task) {
  KUMO_ASSIGN_OR_RETURN(const bool keeps, Keeps(task));
  if (!keeps) return Copy(task.file);
  const MutexLock lock(mutex_);
  ++progress_.kept_files;
  if (options_.quick) progress_.unread_bytes += task.file.size;
  return OkStatus();
}

Result<bool> Staging::Keeps(const Task& task) {
  if (!task.crc32c) return false;
  if (options_.quick) return true;
  const auto count = [this](uint64_t bytes) {
    const MutexLock lock(mutex_);
    progress_.read_bytes += bytes;
    return !stopping_;
  };
  const Result<uint32_t> crc =
      ChecksumOf(*files_, DestinationOf(task.file.path), task.file.size, count);
  if (crc.ok() && *crc == *task.crc32c) return true;
  if (!crc.ok() && crc.status().code() != StatusCode::kDataLoss) return crc.status();
  const MutexLock lock(mutex_);
  if (progress_.damaged.size() < kMostDamaged) progress_.damaged.push_back(task.file.path);
  return false;
}

Status Staging::Copy(const SourceFile& file) {
  const auto count = [this](uint64_t bytes) {
    const MutexLock lock(mutex_);
    progress_.copied_bytes += bytes;
    return !stopping_;
  };
  const std::string from = JoinPath(folder_, file.path);
  const std::string part = PartOf(file);
  const auto fails = [](const Status& status) {
    return !status.ok() && status.code() != StatusCode::kNotFound;
  };
  const Result<uint32_t> copied = CopyFile(*files_, from, file.size, part, count);
  if (fails(copied.status())) return copied.status();
  const Result<SourceFile> now = LookAtSourceFile(folder_, file.path);
  if (fails(now.status())) return now.status();
  if (!copied.ok() || !now.ok() || *now != file) {
    if (files_->Exists(part)) KUMO_RETURN_IF_ERROR(files_->RemoveFile(part));
    return Unavailable(from +
                       " changed while it was copied; stage again when no process writes it");
  }
  return PutInPlace({file, *copied}, part);
}

// A file that is in place is in the record, whenever this process is killed: otherwise no later run
// would remove it when the source has lost it. The line of a file that was there before stays until
// the new one is in place.
Status Staging::PutInPlace(const StagedFile& file, const std::string& part) {
  bool replaces = false;
  {
    const MutexLock lock(mutex_);
    replaces = record_.files().contains(file.source.path);
    if (!replaces) KUMO_RETURN_IF_ERROR(record_.Add(file));
  }
  const std::string to = DestinationOf(file.source.path);
  KUMO_RETURN_IF_ERROR(files_->CreateDirectories(DirectoryOf(to)));
  KUMO_RETURN_IF_ERROR(files_->Rename(part, to));
  const MutexLock lock(mutex_);
  ++progress_.copied_files;
  return replaces ? record_.Add(file) : OkStatus();
}

Status Staging::Remove(const std::string& path) {
  const std::string there = DestinationOf(path);
  if (files_->Exists(there)) KUMO_RETURN_IF_ERROR(files_->RemoveFile(there));
  record_.Forget(path);
  ++progress_.removed_files;
  return OkStatus();
}

Status Staging::CleanUp() {
  for (const std::string& path : gone_) KUMO_RETURN_IF_ERROR(Remove(path));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        files_->List(OwnFolder(destination_)));
  for (const std::string& name : names) {
    if (!name.ends_with(kPartEnd)) continue;
    KUMO_RETURN_IF_ERROR(files_->RemoveFile(JoinPath(OwnFolder(destination_), name)));
  }
  return record_.Rewrite();
}

namespace {

// About ten million files.
constexpr uint64_t kLongestRecord = uint64_t{1} << 30;

std::string Line(const StagedFile& file) {
  const std::string rest = HexDigits(file.crc32c) + " " + std::to_string(file.source.size) + " " +
                           std::to_string(file.source.modified_ns) + " " + file.source.path;
  return HexDigits(Crc32c(AsBytes(rest))) + " " + rest + "\n";
}

// Removes a number and the following blank from the start of the text.
template <typename Number>
bool TakeColumn(std::string_view* text, int base, Number* number) {
  const std::optional<Number> taken = TakeNumber<Number>(text, base);
  if (!taken || !text->starts_with(' ')) return false;
  *number = *taken;
  text->remove_prefix(1);
  return true;
}

std::optional<StagedFile> ParseLine(std::string_view line) {
  uint32_t crc = 0;
  StagedFile file;
  if (!TakeColumn(&line, 16, &crc) || Crc32c(AsBytes(line)) != crc) return std::nullopt;
  if (!TakeColumn(&line, 16, &file.crc32c) || !TakeColumn(&line, 10, &file.source.size) ||
      !TakeColumn(&line, 10, &file.source.modified_ns) || line.empty()) {
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
  // Keeps a torn line apart from the new one.
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
