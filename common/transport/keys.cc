#include "common/transport/keys.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include <zmq.h>

#include "common/base/text.h"

namespace kumo {
namespace {

constexpr std::array<std::pair<std::string_view, KeyHolder::Role>, 3> kRoles = {{
    {"server", KeyHolder::Role::kServer},
    {"worker", KeyHolder::Role::kWorker},
    {"client", KeyHolder::Role::kClient},
}};
constexpr std::string_view kAnyIndex = "any";
constexpr std::string_view kBlank = " \t\r";

std::string_view RoleText(KeyHolder::Role role) {
  for (const auto& [text, value] : kRoles) {
    if (value == role) return text;
  }
  return "";
}

std::optional<int> IndexIn(std::string_view text) {
  const std::optional<int> index = ParseNumber<int>(text);
  const bool plain = text.size() == 1 || !text.starts_with('0');
  return plain && index && *index >= 0 && *index < kMostKeyHolders ? index : std::nullopt;
}

// Decodes the 32 bytes of a key; none if it is not Z85.
std::optional<std::string> KeyBytesOf(const std::string& key) {
  std::string bytes(kKeyBytes, '\0');
  const bool right =
      key.size() == kKeyCharacters && key.find('\0') == std::string::npos &&
      zmq_z85_decode(reinterpret_cast<uint8_t*>(bytes.data()), key.c_str()) != nullptr;
  if (!right) return std::nullopt;
  return bytes;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

Result<KeyHolder> ParseHolder(std::string_view role, std::string_view index) {
  KeyHolder holder;
  bool known = false;
  for (const auto& [text, value] : kRoles) {
    if (text != role) continue;
    holder.role = value;
    known = true;
  }
  if (!known) return InvalidArgument("the role must be server, worker or client");
  const bool any = index == kAnyIndex;
  if (any && holder.role == KeyHolder::Role::kServer) {
    return InvalidArgument(
        "a server's index must be a number, because each server has a key of its own");
  }
  if (!any && holder.role == KeyHolder::Role::kClient) {
    return InvalidArgument("a client's index must be any, because all clients share one key");
  }
  const std::optional<int> number = IndexIn(index);
  if (!any && !number) {
    return InvalidArgument("the index must be a number from 0 to " +
                           std::to_string(kMostKeyHolders - 1) +
                           (holder.role == KeyHolder::Role::kWorker ? ", or any" : ""));
  }
  holder.index = any ? KeyHolder::kAny : *number;
  return holder;
}

using OnLine = std::function<Status(const KeyHolder& holder, std::string key)>;

// Calls on_line for every line with a key. Errors do not contain the line's content, which may be a
// secret.
Status ParseLines(const std::string& text, const OnLine& on_line) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::string where = "line " + std::to_string(++number);
    if (line.find('\0') != std::string_view::npos) {
      return InvalidArgument(where + " contains a zero byte: the file is no text");
    }
    const std::vector<std::string_view> words = Words(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    if (words.size() != 3) {
      return InvalidArgument(where + " must have three words: role, index, key");
    }
    const Result<KeyHolder> holder = ParseHolder(words[0], words[1]);
    if (!holder.ok()) return holder.status().WithContext(where);
    std::string key(words[2]);
    if (!KeyBytesOf(key)) {
      return InvalidArgument(where + ": the key must have " + std::to_string(kKeyCharacters) +
                             " characters of Z85");
    }
    KUMO_RETURN_IF_ERROR(on_line(*holder, std::move(key)).WithContext(where));
  }
  return OkStatus();
}

}  // namespace

std::string KeyHolder::ToString() const {
  return std::string(RoleText(role)) + " " +
         (index == kAny ? std::string(kAnyIndex) : std::to_string(index));
}

std::string KeyHolder::FileName() const {
  return std::string(RoleText(role)) + (index == kAny ? "" : "-" + std::to_string(index)) + ".key";
}

std::string KeyHolder::Names() const {
  if (role == Role::kServer) return ServerPeer(index);
  if (index == kAny) return std::string(RoleText(role)) + "/";
  return "worker/worker-" + std::to_string(index) + "/";
}

std::optional<int> WorkerIndexIn(std::string_view worker_name) {
  constexpr std::string_view kWorker = "worker-";
  if (!worker_name.starts_with(kWorker)) return std::nullopt;
  return IndexIn(worker_name.substr(kWorker.size()));
}

bool MayUse(std::string_view names, const PeerName& name) {
  return names.ends_with('/') ? name.starts_with(names) : !names.empty() && name == names;
}

Status CheckCurve() {
  if (zmq_has("curve") == 1) return OkStatus();
  return Internal(
      "this libzmq was built without CURVE, which keys need: install one with libsodium");
}

Result<KeyPair> MakeKeyPair() {
  KUMO_RETURN_IF_ERROR(CheckCurve());
  std::array<char, kKeyCharacters + 1> public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    return Internal(std::string("cannot make a key: ") + zmq_strerror(zmq_errno()));
  }
  return KeyPair{public_key.data(), secret_key.data()};
}

std::string SecretKeyText(const KeyHolder& holder, const KeyPair& keys) {
  return "# The secret key of " + holder.ToString() +
         " of a Kumo job: a process that has it can act as this one.\n" + holder.ToString() + " " +
         keys.secret_key + "\n";
}

namespace {

// InvalidArgument, without the key, if it is no secret key.
Result<KeyPair> KeyPairOf(const std::string& secret_key) {
  KUMO_RETURN_IF_ERROR(CheckCurve());
  std::array<char, kKeyCharacters + 1> public_key{};
  if (!KeyBytesOf(secret_key) || zmq_curve_public(public_key.data(), secret_key.c_str()) != 0) {
    return InvalidArgument("the text is no secret key");
  }
  return KeyPair{public_key.data(), secret_key};
}

}  // namespace

Result<KeyPair> ParseSecretKey(const std::string& text, const KeyHolder& holder) {
  std::optional<KeyPair> found;
  KUMO_RETURN_IF_ERROR(ParseLines(text, [&](const KeyHolder& whose, const std::string& key) {
    if (whose != holder) {
      return InvalidArgument("the file has the key of " + whose.ToString() + ", not of " +
                             holder.ToString());
    }
    if (found) return InvalidArgument("the file has a second key");
    Result<KeyPair> keys = KeyPairOf(key);
    if (!keys.ok()) return keys.status();
    found = *keys;
    return OkStatus();
  }));
  if (!found) return InvalidArgument("the file has no key");
  return *found;
}

Result<AllowList> AllowList::Parse(const std::string& text) {
  AllowList list;
  KUMO_RETURN_IF_ERROR(ParseLines(text, [&](const KeyHolder& holder, const std::string& key) {
    return list.Add(holder, key);
  }));
  return list;
}

Status AllowList::Add(const KeyHolder& holder, const std::string& public_key) {
  const std::optional<std::string> bytes = KeyBytesOf(public_key);
  if (!bytes) return InvalidArgument("the key of " + holder.ToString() + " is not Z85");
  if (Find(holder) != nullptr) return InvalidArgument(holder.ToString() + " has a key already");
  if (const KeyHolder* other = HolderOf(*bytes)) {
    return InvalidArgument("the key of " + holder.ToString() + " is also the key of " +
                           other->ToString());
  }
  entries_[holder] = public_key;
  holders_[*bytes] = holder;
  return OkStatus();
}

const std::string* AllowList::Find(const KeyHolder& holder) const {
  const auto found = entries_.find(holder);
  return found != entries_.end() ? &found->second : nullptr;
}

const KeyHolder* AllowList::HolderOf(std::string_view key_bytes) const {
  const auto found = holders_.find(std::string(key_bytes));
  return found != holders_.end() ? &found->second : nullptr;
}

std::string AllowList::ToString() const {
  std::string text =
      "# The public keys of a Kumo job's processes: role, index, key. A process with the secret "
      "key "
      "of one of them may connect.\n";
  for (const auto& [holder, key] : entries_) text += holder.ToString() + " " + key + "\n";
  return text;
}

}  // namespace kumo
