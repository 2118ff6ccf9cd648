// Input images: the images that a user names for a trained network, as files, folders and archives.
//
// Immutable after Find; thread-safe, except for the caller's `see`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_files.h"
#include "models/graph/graph.h"

namespace kumo {

class InputImages {
 public:
  // Lists the images, folders and archives recursively. NotFound if an input does not exist;
  // InvalidArgument if it is neither image nor folder nor archive (`advice` ends the message) or
  // contains no images; DataLoss if an archive is damaged.
  static Result<InputImages> Find(std::span<const std::string> inputs, const std::string& advice);

  int64_t size() const { return size_; }
  // "FILE: REASON" of entries that are no readable files: links to nothing, for example.
  const std::vector<std::string>& unusable() const { return unusable_; }
  // Folders that contain images which are not in an archive; each once.
  std::vector<std::string> folders() const;

  // Receives each image's number (from 0: in the order of the inputs, the content of one sorted by
  // name), its name for people, and its bytes, or the reason why they cannot be read.
  using See = std::function<Status(int64_t number, const std::string& file,
                                   const Result<std::span<const uint8_t>>& content)>;
  // Calls `see` with each image, of an archive in its order. The first error of `see`, or DataLoss
  // if an archive is damaged.
  Status Read(const See& see) const;

 private:
  struct Source {
    ImageContainer container;  // without a path: `files` are paths
    std::vector<std::string> files;
  };
  Status Add(const std::string& input, const std::string& advice);

  std::vector<Source> sources_;
  std::vector<std::string> unusable_;
  int64_t size_ = 0;
};

// InvalidArgument if the network's only input is no image of 1 or 3 channels; `advice` ends the
// message if it takes no images at all.
Status CheckTakesImages(const Graph& graph, const std::string& advice);

// Whether an error of reading or decoding one image says nothing about the next one.
bool IsOfOneImage(const Status& error);

// DataLoss if images are damaged, unless they are skipped (data.damaged) and there are others.
Status DamageOf(size_t damaged, size_t whole, bool skips);

}  // namespace kumo
