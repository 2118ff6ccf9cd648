#include "common/transport/key_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/file.h"

namespace kumo {
namespace {

// Larger than the allow list of all processes.
constexpr uint64_t kLongestFile = 1 << 20;
constexpr mode_t kSecretMode = 0600;
constexpr mode_t kAllowListMode = 0644;
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kNotOfASecret = S_IRWXO | S_IWGRP;
constexpr mode_t kNotOfTheAllowList = S_IWOTH | S_IWGRP;

Status SystemError(const std::string& path, const std::string& what) {
  return FailedPrecondition(path + " " + what + ": " + std::strerror(errno));
}

Status CheckMode(const std::string& path, mode_t mode, mode_t forbidden) {
  if ((mode & forbidden) == 0) return OkStatus();
  std::array<char, 8> octal{};
  std::snprintf(octal.data(), octal.size(), "%04o", static_cast<unsigned>(mode & 07777));
  const char* what = (mode & forbidden & (S_IWGRP | S_IWOTH)) != 0 ? "changed" : "read";
  return FailedPrecondition(path + " can be " + what + " by others (mode " + octal.data() +
                            "): chmod " + ((forbidden & S_IROTH) != 0 ? "g-w,o-rwx " : "go-w ") +
                            path);
}

// Reads a regular file, or a link to one, that has none of the `forbidden` permissions.
Result<std::string> ReadGuarded(const std::string& path, mode_t forbidden) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path, "cannot be opened");
  struct stat info {};
  Status status;
  std::string text;
  if (fstat(fd, &info) != 0) {
    status = SystemError(path, "cannot be examined");
  } else if (!S_ISREG(info.st_mode)) {
    status = FailedPrecondition(path + " is not a file");
  } else if (static_cast<uint64_t>(info.st_size) > kLongestFile) {
    status = FailedPrecondition(path + " is too long for a key file");
  } else if (status = CheckMode(path, info.st_mode, forbidden); status.ok()) {
    text.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = read(fd, text.data() + done, text.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) status = SystemError(path, "cannot be read");
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    text.resize(done);
  }
  close(fd);
  if (!status.ok()) return status;
  return text;
}

bool IsThere(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Adds the path to a parser's error.
Status About(const std::string& path, const Status& status) {
  return FailedPrecondition(path + ": " + status.message());
}

Result<KeyPair> ReadSecretKey(const std::string& folder, const KeyHolder& holder) {
  const std::string path = JoinPath(folder, holder.FileName());
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadGuarded(path, kNotOfASecret));
  Result<KeyPair> keys = ParseSecretKey(text, holder);
  if (!keys.ok()) return About(path, keys.status());
  return keys;
}

Status NoKey(const std::string& folder, const std::string& files, const std::string& whose) {
  return FailedPrecondition("cluster.keys = " + folder + ": there is no " + files +
                            ", the key of " + whose + "; make it with `kumo keys`");
}

// Creates a file that appears complete; never replaces an existing one.
Status WriteSecret(const std::string& path, const std::string& text) {
  const std::string temporary = TemporaryName(path);
  // The leftover of an interrupted run.
  unlink(temporary.c_str());
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kSecretMode);
  if (fd < 0) return SystemError(temporary, "cannot be created");
  Status status;
  errno = ENOSPC;  // for a short write, which sets none
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || fsync(fd) != 0) {
    status = SystemError(temporary, "cannot be written");
  }
  close(fd);
  // Unlike rename, link does not replace.
  if (status.ok() && link(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError(path, "cannot be created");
  }
  unlink(temporary.c_str());
  return status;
}

Status MakeFolder(const std::string& folder) {
  PosixFileSystem files;
  const std::string above = DirectoryOf(folder);
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(above));
  if (mkdir(folder.c_str(), kFolderMode) == 0) return files.SyncDirectory(above);
  if (errno != EEXIST) return SystemError(folder, "cannot be created");
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return SystemError(folder, "cannot be examined");
  if (!S_ISDIR(info.st_mode)) return FailedPrecondition(folder + " is not a folder");
  return CheckMode(folder, info.st_mode, S_IWGRP | S_IWOTH);
}

// The public key of a holder whose file may exist; none if it does not.
Result<std::string> PublicKeyOf(const std::string& folder, const KeyHolder& holder) {
  if (!IsThere(JoinPath(folder, holder.FileName()))) return std::string();
  KUMO_ASSIGN_OR_RETURN(const KeyPair keys, ReadSecretKey(folder, holder));
  return keys.public_key;
}

Status CheckSame(const std::string& folder, const KeyHolder& holder, const std::string& own,
                 const std::string* listed) {
  const std::string list = JoinPath(folder, kAllowListFile);
  const std::string file = JoinPath(folder, holder.FileName());
  if (listed == nullptr) {
    return FailedPrecondition(list + " has no key of " + holder.ToString() + ", but there is " +
                              file + "; both must come from one run of kumo keys");
  }
  if (own == *listed) return OkStatus();
  return FailedPrecondition(file + " is not the key that " + list + " has for " +
                            holder.ToString() + "; both must come from one run of kumo keys");
}

}  // namespace

Result<AllowList> ReadAllowList(const std::string& folder) {
  const std::string path = JoinPath(folder, kAllowListFile);
  if (!IsThere(path)) return NoKey(folder, kAllowListFile, "every process");
  KUMO_ASSIGN_OR_RETURN(const std::string text, ReadGuarded(path, kNotOfTheAllowList));
  Result<AllowList> list = AllowList::Parse(text);
  if (!list.ok()) return About(path, list.status());
  return list;
}

Result<SharedKeys> ReadKeys(const std::string& folder, const KeyHolder& holder) {
  if (folder.empty()) return SharedKeys();
  ConnectionKeys keys{holder, {}, {}, folder};
  if (!IsThere(JoinPath(folder, holder.FileName()))) {
    return NoKey(folder, holder.FileName(), holder.ToString());
  }
  KUMO_ASSIGN_OR_RETURN(keys.own, ReadSecretKey(folder, holder));
  KUMO_ASSIGN_OR_RETURN(keys.allowed, ReadAllowList(folder));
  KUMO_RETURN_IF_ERROR(CheckSame(folder, holder, keys.own.public_key, keys.allowed.Find(holder)));
  return std::make_shared<const ConnectionKeys>(std::move(keys));
}

Result<SharedKeys> ReadWorkerKeys(const std::string& folder, const std::string& worker_name) {
  if (folder.empty()) return SharedKeys();
  const std::optional<int> index = WorkerIndexIn(worker_name);
  if (index && IsThere(JoinPath(folder, WorkerKey(*index).FileName()))) {
    return ReadKeys(folder, WorkerKey(*index));
  }
  const std::string shared = kSharedWorkerKey.FileName();
  if (IsThere(JoinPath(folder, shared))) return ReadKeys(folder, kSharedWorkerKey);
  if (index) {
    return NoKey(folder, WorkerKey(*index).FileName() + " and no " + shared,
                 "worker " + worker_name);
  }
  return NoKey(folder, shared,
               "worker " + worker_name +
                   " (a worker with a key of its own must be named worker-0, "
                   "worker-1, ...)");
}

Result<std::vector<KeyHolder>> AddKeys(const std::string& folder,
                                       const std::vector<KeyHolder>& holders) {
  KUMO_RETURN_IF_ERROR(CheckCurve());
  KUMO_RETURN_IF_ERROR(MakeFolder(folder));
  AllowList list;
  if (IsThere(JoinPath(folder, kAllowListFile))) {
    KUMO_ASSIGN_OR_RETURN(list, ReadAllowList(folder));
  }
  // All existing files are checked before anything is made.
  std::vector<KeyHolder> missing;
  for (const KeyHolder& holder : holders) {
    KUMO_ASSIGN_OR_RETURN(const std::string own, PublicKeyOf(folder, holder));
    const std::string* listed = list.Find(holder);
    if (!own.empty() && listed != nullptr) {
      KUMO_RETURN_IF_ERROR(CheckSame(folder, holder, own, listed));
    }
    // An interrupted run has left a key that the list does not contain yet.
    if (!own.empty() && listed == nullptr) {
      const Status added = list.Add(holder, own);
      if (!added.ok()) return About(JoinPath(folder, holder.FileName()), added);
    }
    if (own.empty() && listed == nullptr) missing.push_back(holder);
  }
  for (const KeyHolder& holder : missing) {
    KUMO_ASSIGN_OR_RETURN(const KeyPair keys, MakeKeyPair());
    KUMO_RETURN_IF_ERROR(
        WriteSecret(JoinPath(folder, holder.FileName()), SecretKeyText(holder, keys)));
    KUMO_RETURN_IF_ERROR(list.Add(holder, keys.public_key));
  }
  PosixFileSystem files;
  const std::string path = JoinPath(folder, kAllowListFile);
  KUMO_RETURN_IF_ERROR(WriteFileAtomically(files, path, list.ToString()));
  // Independent of the umask.
  if (chmod(path.c_str(), kAllowListMode) != 0)
    return SystemError(path, "cannot be protected (chmod)");
  return missing;
}

}  // namespace kumo
