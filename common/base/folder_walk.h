// Folder walk: the entries below a folder, following links, each real folder once.
//
// A link to a folder above it is never followed, so the walk ends whatever the links are.
//
// Function of the disk's contents; thread-safe.
#pragma once

#include <functional>
#include <string>

#include "common/base/status.h"

namespace kumo {

struct FolderEntry {
  enum class Kind {
    kFile,      // a regular file, or a link to one
    kFolder,    // a real folder that the walk has not entered yet
    kRepeated,  // a real folder that the walk has entered by another path
    kUnusable,  // a link to nothing or to a folder above it, a folder that cannot be listed, a file
                // that cannot be examined, or neither a file nor a folder (a pipe, a device)
  };
  Kind kind = Kind::kFile;
  std::string path;  // below the root: "cat/1.jpg"
  // With kRepeated and kUnusable: the reason, which follows the entry's name in a message.
  std::string why{};
};

// True: the walk enters the folder. Only kFolder and kRepeated can be entered.
using SeeFolderEntry = std::function<bool(const FolderEntry& entry)>;

// Calls `see` with each entry below `root`, the entries of each folder in the byte order of their
// names. A folder that is entered and cannot be listed is seen again, as kUnusable. NotFound,
// FailedPrecondition (no permission) or Unavailable if `root` cannot be listed.
Status WalkFolder(const std::string& root, const SeeFolderEntry& see);

}  // namespace kumo
