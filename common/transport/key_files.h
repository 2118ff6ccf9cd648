// Key folder (cluster.keys): one file per secret key (KeyHolder::FileName) and the allow list. It
// is flat, and its files may be symbolic links, as in a volume of a Kubernetes Secret.
//
// A secret key that others can read or a group can change is refused; so is an allow list that a
// group or others can change. The group may read, because Kubernetes (fsGroup) gives a Secret to a
// non-root process that way.
//
// Stateless functions; thread-safe. Error messages name the file and the line, if any, never a key.
// FailedPrecondition: a file is missing, malformed or has wrong permissions.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/transport/keys.h"

namespace kumo {

constexpr char kAllowListFile[] = "allow-list";

Result<AllowList> ReadAllowList(const std::string& folder);

// Reads the keys of one process: its own key pair, which must agree with the allow list, and all
// public keys. Null for the folder "" (no keys).
Result<SharedKeys> ReadKeys(const std::string& folder, const KeyHolder& holder);
// Reads the keys of a worker: from WORKER_NAME.key if the name has the form worker-3 and the file
// exists, otherwise from worker.key.
Result<SharedKeys> ReadWorkerKeys(const std::string& folder, const std::string& worker_name);

// Makes keys for the `holders` that have none, and the folder (mode 0700) if necessary; existing
// keys are kept. A holder in the allow list counts as having a key, wherever its file is. Returns
// the holders that got keys. FailedPrecondition, without making more keys, if the existing files
// are malformed or inconsistent.
Result<std::vector<KeyHolder>> AddKeys(const std::string& folder,
                                       const std::vector<KeyHolder>& holders);

}  // namespace kumo
