// Manifest of a checkpoint: the text protobuf that makes a folder a checkpoint, and its list of the
// network's tensors (names, shapes, positions in the flat vector).
//
// Stateless functions. `folder` and `name` as in checkpoint.h.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/job/parameter_layout.h"
#include "proto/checkpoint.pb.h"

namespace kumo {

// Makes the files of manifest.version() a checkpoint. Requires that all manifest.files() are
// durable and in shard order. Sets manifest.name(). Internal if the manifest is invalid.
Status WriteManifest(FileSystem& files, const std::string& folder,
                     const checkpoint::Manifest& manifest);

// NotFound if the folder is no checkpoint; DataLoss if the manifest is damaged or another
// checkpoint's.
Result<checkpoint::Manifest> ReadManifest(FileSystem& files, const std::string& folder,
                                          const std::string& name);

// Parses a manifest's text from any source. path: for messages.
Result<checkpoint::Manifest> ParseManifest(const std::string& text, const std::string& path,
                                           const std::string& name);
// Upper bound on the length of a manifest.
constexpr uint64_t kManifestLimitBytes = 16 << 20;

void SetTensors(const ParameterLayout& layout, checkpoint::Manifest* manifest);

// True if the manifest has the list; manifests of release 0.1 have none.
bool HasTensors(const checkpoint::Manifest& manifest);

// DataLoss if the list is invalid or contradicts the manifest's fingerprint or positions. Requires
// HasTensors.
Result<ParameterLayout> LayoutOf(const checkpoint::Manifest& manifest);

}  // namespace kumo
