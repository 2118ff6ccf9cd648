#include "common/checkpoint/final_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/checkpoint/checkpoint.h"

namespace kumo {
namespace {

constexpr uint64_t kCopiedBytes = 256 << 10;

Status CopyFile(FileSystem& files, const std::string& from, const std::string& to) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> source, files.OpenForReading(from));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> copy, AtomicFile::Create(files, to));
  const uint64_t bytes = source->size();
  std::vector<std::byte> piece(std::min(bytes, kCopiedBytes));
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    const auto now = std::span(piece).first(std::min<uint64_t>(piece.size(), bytes - at));
    KUMO_RETURN_IF_ERROR(source->Read(at, now));
    KUMO_RETURN_IF_ERROR(copy->Append(now));
  }
  return copy->Commit();
}

bool IsThere(FileSystem& files, const std::string& to, const checkpoint::Manifest& manifest) {
  const Result<checkpoint::Manifest> there = VerifyCheckpoint(files, to, manifest.name());
  return there.ok() && there->SerializeAsString() == manifest.SerializeAsString();
}

// True if a file matches the manifest: an earlier call has copied it.
bool IsCopied(FileSystem& files, const std::string& to, const checkpoint::Manifest& manifest,
              const checkpoint::File& file) {
  checkpoint::Manifest of_one = manifest;
  of_one.clear_files();
  *of_one.add_files() = file;
  return VerifyFiles(files, to, of_one).ok();
}

// Removes other contents of the folder, first the manifest of another job's model of the same
// round.
Status RemoveOthers(FileSystem& files, const std::string& model,
                    const checkpoint::Manifest& manifest) {
  if (files.Exists(JoinPath(model, "MANIFEST"))) {
    KUMO_RETURN_IF_ERROR(files.RemoveFile(JoinPath(model, "MANIFEST")));
    KUMO_RETURN_IF_ERROR(files.SyncDirectory(model));
  }
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(model));
  for (const std::string& name : names) {
    const bool named = std::any_of(manifest.files().begin(), manifest.files().end(),
                                   [&](const auto& file) { return file.name() == name; });
    if (!named) KUMO_RETURN_IF_ERROR(files.RemoveFile(JoinPath(model, name)));
  }
  return OkStatus();
}

}  // namespace

Status CheckFinalModelFolder(FileSystem& files, const std::string& to, const std::string& job) {
  KUMO_RETURN_IF_ERROR(files.CheckWritable(to));
  KUMO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListCheckpoints(files, to));
  for (const std::string& name : names) {
    const Result<checkpoint::Manifest> manifest = ReadManifest(files, to, name);
    if (!manifest.ok() || manifest->job_name() == job) continue;
    return FailedPrecondition("the folder already has the model of the job " +
                              manifest->job_name() + " (" + JoinPath(to, name) +
                              "); use one folder per job");
  }
  return OkStatus();
}

Result<std::string> PutFinalModel(FileSystem& files, const std::string& folder,
                                  const std::string& name, const std::string& to) {
  KUMO_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, ReadManifest(files, folder, name));
  std::string model = JoinPath(to, name);
  if (IsThere(files, to, manifest)) return model;
  KUMO_RETURN_IF_ERROR(CheckFinalModelFolder(files, to, manifest.job_name()));
  KUMO_RETURN_IF_ERROR(files.CreateDirectories(model));
  KUMO_RETURN_IF_ERROR(RemoveOthers(files, model, manifest));
  for (const checkpoint::File& file : manifest.files()) {
    if (IsCopied(files, to, manifest, file)) continue;
    KUMO_RETURN_IF_ERROR(CopyFile(files, JoinPath(JoinPath(folder, name), file.name()),
                                  JoinPath(model, file.name())));
  }
  KUMO_RETURN_IF_ERROR(VerifyFiles(files, to, manifest));
  KUMO_RETURN_IF_ERROR(WriteManifest(files, to, manifest));
  return model;
}

}  // namespace kumo
