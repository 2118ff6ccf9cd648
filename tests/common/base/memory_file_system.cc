#include "tests/common/base/memory_file_system.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "common/base/rng.h"

namespace kumo {
namespace {

class MemoryWritableFile : public WritableFile {
 public:
  MemoryWritableFile(MemoryFileSystem* disk, std::shared_ptr<MemoryFileSystem::Node> node)
      : disk_(disk), node_(std::move(node)) {}

  Status Append(std::span<const std::byte> bytes) override {
    const Status status = disk_->Operation("write");
    const size_t n = status.ok() ? bytes.size() : bytes.size() / 2;
    node_->bytes.append(reinterpret_cast<const char*>(bytes.data()), n);
    return status;
  }
  Status Sync() override {
    KUMO_RETURN_IF_ERROR(disk_->Operation("sync"));
    node_->durable_bytes = node_->bytes;
    return OkStatus();
  }
  Status Close() override { return OkStatus(); }

 private:
  MemoryFileSystem* const disk_;
  const std::shared_ptr<MemoryFileSystem::Node> node_;
};

class MemoryReadableFile : public ReadableFile {
 public:
  explicit MemoryReadableFile(std::string bytes) : bytes_(std::move(bytes)) {}

  uint64_t size() const override { return bytes_.size(); }
  Status Read(uint64_t offset, std::span<std::byte> out) override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return DataLoss("read past the end");
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return OkStatus();
  }

 private:
  const std::string bytes_;
};

}  // namespace

Status MemoryFileSystem::Operation(const std::string& what) {
  const int n = operations_++;
  const bool fails = (fail_from_ >= 0 && n >= fail_from_) || n == fail_only_;
  return fails ? ResourceExhausted("cannot " + what + ": the test filled the disk") : OkStatus();
}

void MemoryFileSystem::PowerCut(uint64_t seed) {
  Rng rng(seed, RngPurpose::kTest);
  const auto survives = [&] { return seed != 0 && rng.NextBelow(2) == 1; };
  Names left = durable_names_;
  std::set<std::string> paths;
  for (const Names* names : {&names_, &durable_names_}) {
    for (const auto& [path, node] : *names) paths.insert(path);
  }
  for (const std::string& path : paths) {
    const auto now = names_.find(path);
    if (!survives()) continue;
    if (now != names_.end()) {
      left[path] = now->second;
    } else {
      left.erase(path);
    }
  }
  for (auto& [path, node] : left) {
    if (node && !survives()) node->bytes = node->durable_bytes;
    if (node) node->durable_bytes = node->bytes;
  }
  names_ = durable_names_ = left;
  fail_from_ = fail_only_ = -1;
}

std::string* MemoryFileSystem::Contents(const std::string& path) {
  const auto at = names_.find(path);
  return at == names_.end() || !at->second ? nullptr : &at->second->bytes;
}

Status MemoryFileSystem::CheckFolderOf(const std::string& path) const {
  const std::string folder = DirectoryOf(path);
  const auto at = names_.find(folder);
  if (folder == "/" || folder == "." || (at != names_.end() && !at->second)) return OkStatus();
  return NotFound("cannot open " + path + ": no such folder");
}

void MemoryFileSystem::Put(const std::string& path, std::string bytes) {
  for (std::string folder = DirectoryOf(path); folder != "/" && folder != ".";
       folder = DirectoryOf(folder)) {
    names_[folder] = durable_names_[folder] = nullptr;
  }
  names_[path] = std::make_shared<Node>(Node{bytes, bytes});
  durable_names_[path] = names_[path];
}

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::Create(const std::string& path) {
  KUMO_RETURN_IF_ERROR(Operation("create " + path));
  KUMO_RETURN_IF_ERROR(CheckFolderOf(path));
  std::shared_ptr<Node>& node = names_[path];
  if (!node) node = std::make_shared<Node>();
  node->bytes.clear();
  return std::unique_ptr<WritableFile>(new MemoryWritableFile(this, node));
}

Result<std::unique_ptr<WritableFile>> MemoryFileSystem::OpenForAppending(const std::string& path) {
  KUMO_RETURN_IF_ERROR(Operation("open " + path));
  KUMO_RETURN_IF_ERROR(CheckFolderOf(path));
  std::shared_ptr<Node>& node = names_[path];
  if (!node) node = std::make_shared<Node>();
  return std::unique_ptr<WritableFile>(new MemoryWritableFile(this, node));
}

Result<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenForReading(const std::string& path) {
  const std::string* bytes = Contents(path);
  if (bytes == nullptr) return NotFound("cannot open " + path + ": no such file");
  return std::unique_ptr<ReadableFile>(new MemoryReadableFile(*bytes));
}

Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  KUMO_RETURN_IF_ERROR(Operation("rename " + from));
  const auto at = names_.find(from);
  if (at == names_.end()) return NotFound("cannot rename " + from);
  KUMO_RETURN_IF_ERROR(CheckFolderOf(to));
  Names moved;  // with what is in it, if it is a folder
  std::erase_if(names_, [&](const auto& entry) {
    const auto& [path, node] = entry;
    if (path != from && !path.starts_with(from + "/")) return false;
    moved[to + path.substr(from.size())] = node;
    return true;
  });
  for (auto& [path, node] : moved) names_[path] = node;
  return OkStatus();
}

Status MemoryFileSystem::RemoveFile(const std::string& path) {
  KUMO_RETURN_IF_ERROR(Operation("remove " + path));
  if (Contents(path) == nullptr) return NotFound("cannot remove " + path);
  names_.erase(path);
  return OkStatus();
}

Result<bool> MemoryFileSystem::Has(const std::string& path) { return names_.contains(path); }

Status MemoryFileSystem::CreateDirectories(const std::string& path) {
  if (path == "/" || path == "." || names_.contains(path)) return OkStatus();
  KUMO_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(path)));
  KUMO_RETURN_IF_ERROR(Operation("create " + path));
  names_[path] = nullptr;
  return SyncDirectory(DirectoryOf(path));
}

Result<std::vector<std::string>> MemoryFileSystem::List(const std::string& directory) {
  if (!names_.contains(directory)) return NotFound("cannot list " + directory);
  std::vector<std::string> names;
  for (const auto& [path, node] : names_) {
    if (DirectoryOf(path) == directory) names.push_back(path.substr(directory.size() + 1));
  }
  return names;
}

Status MemoryFileSystem::RemoveEmptyDirectory(const std::string& path) {
  KUMO_RETURN_IF_ERROR(Operation("remove " + path));
  KUMO_ASSIGN_OR_RETURN(std::vector<std::string> names, List(path));
  if (!names.empty()) return FailedPrecondition("cannot remove " + path + ": not empty");
  names_.erase(path);
  return OkStatus();
}

Status MemoryFileSystem::SyncDirectory(const std::string& directory) {
  KUMO_RETURN_IF_ERROR(Operation("sync " + directory));
  std::erase_if(durable_names_, [&](const auto& entry) {
    return DirectoryOf(entry.first) == directory && !names_.contains(entry.first);
  });
  for (const auto& [path, node] : names_) {
    if (DirectoryOf(path) == directory) durable_names_[path] = node;
  }
  return OkStatus();
}

}  // namespace kumo
