// Who is who where connections are encrypted (CURVE): each process of a job has a key pair, and the
// allow list says whose a public key is. What a key's holder is decides under which names it may
// speak.
//
// Keys are written as Z85 (ZeroMQ RFC 32): 40 characters for 32 bytes. Neither a secret key nor a
// line that may contain one is ever part of a message.
//
// Values and functions without state. They do no I/O; key_files.h does.
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
// More than a job has processes of one role.
constexpr int kMostKeyHolders = 4096;

// Whom a key belongs to.
struct KeyHolder {
  enum class Role { kServer, kWorker, kClient };
  static constexpr int kAny = -1;  // all of that role have the one key

  Role role = Role::kClient;
  int index = kAny;

  // "server 0", "worker 3", "worker any", "client any": in files and messages.
  std::string ToString() const;
  // "server-0.key", "worker-3.key", "worker.key", "client.key".
  std::string FileName() const;
  // What it may call itself, for MayUse: "server/0", "worker/worker-3/", "worker/", "client/".
  std::string Names() const;

  auto operator<=>(const KeyHolder&) const = default;
};

constexpr KeyHolder ServerKey(int index) { return {KeyHolder::Role::kServer, index}; }
constexpr KeyHolder WorkerKey(int index) { return {KeyHolder::Role::kWorker, index}; }
constexpr KeyHolder kSharedWorkerKey{KeyHolder::Role::kWorker, KeyHolder::kAny};
constexpr KeyHolder kClientKey{KeyHolder::Role::kClient, KeyHolder::kAny};

// The worker of this name that may have a key of its own: 3 of "worker-3"; none for other names.
std::optional<int> WorkerIndexIn(std::string_view worker_name);

// Whether `names` (of KeyHolder::Names) allow `name`: the same, or, where `names` ends with '/',
// one that begins so. Nothing allows the empty `names`.
bool MayUse(std::string_view names, const PeerName& name);

struct KeyPair {
  std::string public_key, secret_key;  // Z85
};

// Internal where libzmq was built without CURVE.
Status CheckCurve();
Result<KeyPair> MakeKeyPair();
// InvalidArgument, without the key, where it is no secret key.
Result<KeyPair> KeyPairOf(const std::string& secret_key);

// The text of a secret key file: a line of explanation and "server 0 <secret key>".
std::string SecretKeyText(const KeyHolder& holder, const KeyPair& keys);
// Reads it. InvalidArgument, with the line's number, where it is not of that form, or is the key of
// another holder than `holder`.
Result<KeyPair> ParseSecretKey(const std::string& text, const KeyHolder& holder);

// The public keys of a job's processes. A text of lines "server 0 <public key>"; those that are
// empty or begin with '#' are skipped.
class AllowList {
 public:
  // InvalidArgument, with the line's number: not of that form, a holder or a key that is there
  // twice.
  static Result<AllowList> Parse(const std::string& text);

  // public_key: Z85. InvalidArgument where it is not, or the holder or the key is there already.
  Status Add(const KeyHolder& holder, const std::string& public_key);
  const std::string* Find(
      const KeyHolder& holder) const;  // its public key; null where there is none
  // Whose a key is (its 32 bytes); null where it is nobody's.
  const KeyHolder* HolderOf(std::string_view key_bytes) const;
  // Sorted by role and index.
  const std::map<KeyHolder, std::string>& entries() const { return entries_; }
  std::string ToString() const;

 private:
  std::map<KeyHolder, std::string> entries_;
  std::unordered_map<std::string, KeyHolder> holders_;  // by the key's bytes
};

// What one process needs for its connections.
struct ConnectionKeys {
  KeyHolder holder;
  KeyPair own;
  AllowList allowed;
  std::string folder;  // that they came from
};
using SharedKeys = std::shared_ptr<const ConnectionKeys>;

}  // namespace kumo
