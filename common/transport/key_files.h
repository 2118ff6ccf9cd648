// The folder of keys that cluster.keys names: a file per secret key (KeyHolder::FileName) and the
// allow list. It is flat, and its files may be symbolic links, as in a volume of a Kubernetes
// Secret.
//
// A secret key that others may read, or a group may change, is refused; so is an allow list that a
// group or others may change. The group may read: that is how Kubernetes (fsGroup) gives a Secret
// to a process that is not root.
//
// Functions without state; thread-safe. Errors name the file, and the line where there is one,
// never a key. FailedPrecondition: a file that is missing, has the wrong permissions or is wrong.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/transport/keys.h"

namespace kumo {

constexpr char kAllowListFile[] = "allow-list";

Result<AllowList> ReadAllowList(const std::string& folder);

// The keys of one process: its own, which must be the one that the allow list says, and all others'
// public ones. Null for the folder "": no keys are wanted.
Result<SharedKeys> ReadKeys(const std::string& folder, const KeyHolder& holder);
// Those of a worker: WORKER_NAME.key where that name is of the form worker-3 and the file is there,
// else worker.key.
Result<SharedKeys> ReadWorkerKeys(const std::string& folder, const std::string& worker_name);

// Makes the folder (mode 0700) where it is not there, and in it the keys of those `holders` that
// have none; what is there is kept. Whom the allow list knows has a key, wherever its file is now.
// Returns the holders whose keys were made. FailedPrecondition, and nothing further is made, where
// what is there is wrong or contradicts itself.
Result<std::vector<KeyHolder>> AddKeys(const std::string& folder,
                                       const std::vector<KeyHolder>& holders);

}  // namespace kumo
