// Manifests, and what is made of one that can be read. Where the input has no checksum line, it
// gets the right one.
#include <cinttypes>
#include <cstdio>
#include <string>

#include <glog/logging.h>

#include "common/base/crc32c.h"
#include "common/checkpoint/best.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/continuation.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/origin.h"
#include "common/settings/experiment_text.h"
#include "tests/common/base/memory_file_system.h"
#include "tests/fuzz/fuzzer.h"

namespace kumo::fuzz {
namespace {

void Read(std::string text) {
  if (text.find("# crc32c ") == std::string::npos) {
    char line[32];
    std::snprintf(line, sizeof(line), "# crc32c %08" PRIx32 "\n", Crc32c(AsBytes(text)));
    text += line;
  }
  MemoryFileSystem files;
  const std::string name = CheckpointName(2);
  files.Put("checkpoints/" + name + "/MANIFEST", text);
  const auto manifest = ReadManifest(files, "checkpoints", name);
  if (!manifest.ok()) return;
  (void)VerifyCheckpoint(files, "checkpoints", name);
  if (HasTensors(*manifest)) (void)LayoutOf(*manifest);
  (void)ScoreOf(*manifest, "loss");
  (void)DescribeEvaluation(*manifest);
  Require(LinesOf(Excerpt(manifest->origin())).size() < 100, "an origin without end");
  static const Experiment experiment;
  const auto changes = SettingChanges(manifest->experiment_text(), experiment);
  if (changes.empty()) return;
  const auto continuation = ContinuationOf(*manifest, experiment, changes);
  if (!continuation.ok()) return;
  checkpoint::Manifest continued = *manifest;
  *continued.add_continuations() = *continuation;
  ShardSnapshot snapshot{manifest->version(), {}};
  (void)Adapt(continued, experiment, &snapshot);
}

}  // namespace
}  // namespace kumo::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kumo::fuzz::Read(std::string(kumo::fuzz::AsText(data, size)));
  return 0;
}
