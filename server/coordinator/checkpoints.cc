#include "server/coordinator/checkpoints.h"

#include <algorithm>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr int kMostUnderWay = 2;

}  // namespace

void Checkpoints::GoBack(int64_t last) {
  last_ = last;
  evaluations_.clear();
  FailAll();
}

void Checkpoints::FailAll() {
  under_way_.clear();
  order_.version = -1;
}

bool Checkpoints::IsBehind(int64_t version) const {
  if (static_cast<int>(under_way_.size()) < kMostUnderWay) return false;
  LOG_EVERY_T(WARNING, 60) << "the disk has not finished the last " << under_way_.size()
                           << " checkpoints: none is taken of round " << version;
  return true;
}

void Checkpoints::SetProgress(int64_t version, const checkpoint::Progress& progress) {
  const auto found = under_way_.find(version);
  if (found != under_way_.end()) found->second.progress = progress;
}

void Checkpoints::SetEvaluation(int64_t version, const checkpoint::Evaluation& evaluation) {
  evaluations_[version] = evaluation;
  std::erase_if(evaluations_, [&](const auto& entry) {
    return entry.first < version && !under_way_.contains(entry.first);
  });
}

void Checkpoints::OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress) {
  order_ = {version, order_.attempt + 1, partial};
  under_way_[version] = {order_.attempt, {}, progress, false};
}

bool Checkpoints::Awaits(int64_t version, int attempt) const {
  const auto found = under_way_.find(version);
  return found != under_way_.end() && found->second.attempt == attempt && !found->second.committing;
}

std::optional<checkpoint::Manifest> Checkpoints::Add(int64_t version, int server,
                                                     const checkpoint::File& file, int wanted) {
  const auto found = under_way_.find(version);
  if (found == under_way_.end()) return std::nullopt;
  UnderWay& checkpoint = found->second;
  checkpoint.files[server] = file;
  if (static_cast<int>(checkpoint.files.size()) < wanted) return std::nullopt;
  checkpoint.committing = true;
  under_way_.erase(under_way_.begin(), found);
  checkpoint::Manifest manifest;
  manifest.set_version(version);
  for (const auto& [index, saved] : checkpoint.files) *manifest.add_files() = saved;
  *manifest.mutable_progress() = checkpoint.progress;
  const auto evaluation = evaluations_.find(version);
  if (evaluation != evaluations_.end()) *manifest.mutable_evaluation() = evaluation->second;
  return manifest;
}

void Checkpoints::Committed(int64_t version) {
  under_way_.erase(version);
  last_ = std::max(last_, version);
}

}  // namespace kumo
