// Data notes: the parts of a data set that its reader leaves out, and other things that its owner
// may not have intended, for `kumo check`, `kumo launch` and `kumo data`.
//
// Plain data; thread-safe when it is not changed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kumo {

// Files and folders below a set's folder that give no sample.
struct LeftOut {
  int64_t files = 0;                         // with endings that are not read
  std::map<std::string, int64_t> endings{};  // of them: ".webp"; "" without an ending
  int64_t hidden_files = 0;
  int64_t hidden_folders = 0;                // each with its content
  std::vector<std::string> unusable{};       // skipped links, folders and special files
  std::vector<std::string> empty_classes{};  // folders of classes without images

  // path: relative; its ending is counted.
  void AddFile(const std::string& path);
  bool empty() const;
  // "left out: 45 files (.webp 30, .gif 15), 2 hidden folders"; "" if nothing is left out.
  std::string Text() const;
};

struct DataNotes {
  LeftOut left_out{};
  std::vector<std::string> remarks{};  // sentences without a full stop

  // All of it, a line each.
  std::vector<std::string> Lines() const;
};

}  // namespace kumo
