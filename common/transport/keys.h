// CURVE keys and identities: each process of a job has a key pair, and the allow list maps public
// keys to their holders. The holder determines the names under which its process may speak.
//
// Keys are written in Z85 (ZeroMQ RFC 32): 40 characters for 32 bytes. No message ever contains a
// secret key or a line that may contain one.
//
// Values and stateless functions without I/O; key_files.h does the I/O.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/status.h"
#include "common/transport/message.h"

namespace kumo {

constexpr size_t kKeyCharacters = 40;  // of a key in Z85
constexpr size_t kKeyBytes = 32;
// More than the processes of one role in a job.
constexpr int kMostKeyHolders = 4096;

// Holder of a key.
struct KeyHolder {
  enum class Role { kServer, kWorker, kClient };
  static constexpr int kAny = -1;  // one key for all processes of the role

  Role role = Role::kClient;
  int index = kAny;

  // "server 0", "worker 3", "worker any", "client any": as in files and messages.
  std::string ToString() const;
  // "server-0.key", "worker-3.key", "worker.key", "client.key".
  std::string FileName() const;
  // The names that it may use, for MayUse: "server/0", "worker/worker-3/", "worker/", "client/".
  std::string Names() const;

  auto operator<=>(const KeyHolder&) const = default;
};

constexpr KeyHolder ServerKey(int index) { return {KeyHolder::Role::kServer, index}; }
constexpr KeyHolder WorkerKey(int index) { return {KeyHolder::Role::kWorker, index}; }
constexpr KeyHolder kSharedWorkerKey{KeyHolder::Role::kWorker, KeyHolder::kAny};
constexpr KeyHolder kClientKey{KeyHolder::Role::kClient, KeyHolder::kAny};

// The index of a worker that may have a key of its own: 3 for "worker-3"; none for other names.
std::optional<int> WorkerIndexIn(std::string_view worker_name);

// True if `names` (KeyHolder::Names) allow `name`: they are equal, or `names` ends with '/' and is
// a prefix. The empty `names` allow nothing.
bool MayUse(std::string_view names, const PeerName& name);

struct KeyPair {
  std::string public_key, secret_key;  // Z85
};

// Internal if libzmq was built without CURVE.
Status CheckCurve();
Result<KeyPair> MakeKeyPair();

// The text of a secret key file: a comment line and "server 0 <secret key>".
std::string SecretKeyText(const KeyHolder& holder, const KeyPair& keys);
// Parses it. InvalidArgument, with the line number, if it is malformed or the key of another
// holder.
Result<KeyPair> ParseSecretKey(const std::string& text, const KeyHolder& holder);

// Allow list: the public keys of a job's processes. As text, lines "server 0 <public key>"; empty
// lines and lines that begin with '#' are skipped.
class AllowList {
 public:
  // InvalidArgument, with the line number: malformed, or a holder or a key occurs twice.
  static Result<AllowList> Parse(const std::string& text);

  // public_key: in Z85. InvalidArgument if it is not, or if the holder or the key exists already.
  Status Add(const KeyHolder& holder, const std::string& public_key);
  // The public key of a holder; null if there is none.
  const std::string* Find(const KeyHolder& holder) const;
  // The holder of a key (its 32 bytes); null if there is none.
  const KeyHolder* HolderOf(std::string_view key_bytes) const;
  // Sorted by role and index.
  const std::map<KeyHolder, std::string>& entries() const { return entries_; }
  std::string ToString() const;

 private:
  std::map<KeyHolder, std::string> entries_;
  std::unordered_map<std::string, KeyHolder> holders_;  // by the key's bytes
};

// Keys that one process needs for its connections.
struct ConnectionKeys {
  KeyHolder holder;
  KeyPair own;
  AllowList allowed;
  std::string folder;  // their source
};
using SharedKeys = std::shared_ptr<const ConnectionKeys>;

}  // namespace kumo
