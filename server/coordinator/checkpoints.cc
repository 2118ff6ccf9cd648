#include "server/coordinator/checkpoints.h"

#include <algorithm>

#include <glog/logging.h>

namespace kumo {
namespace {

constexpr TimeUs kPause = 5 * kSecond;
constexpr int kMostUnderWay = 2;

}  // namespace

void Checkpoints::GoBack(int64_t last, TimeUs now) {
  last_ = last;
  began_at_ = now;
  under_way_.clear();
  evaluations_.clear();
  order_.version = unsaved_ = -1;
  again_at_ = give_up_at_ = 0;
}

void Checkpoints::FailAll() {
  under_way_.clear();
  order_.version = -1;
}

bool Checkpoints::IsDue(const JobPlan& plan, int64_t version, TimeUs now) const {
  const RoundPlan last = plan.Round(version - 1);
  const bool by_epochs =
      options_.every_epochs > 0 && last.ends_epoch && (last.epoch + 1) % options_.every_epochs == 0;
  // It is not known yet which one will be the best.
  const bool may_be_best = options_.best != "none" && plan.EvaluatedEpoch(version) >= 0;
  const bool by_rounds = options_.every_rounds > 0 && version % options_.every_rounds == 0;
  const bool by_time = options_.every_minutes > 0 &&
                       static_cast<double>(now - began_at_) >= options_.every_minutes * 60e6;
  return by_rounds || by_epochs || may_be_best || by_time;
}

bool Checkpoints::IsBehind(int64_t version) const {
  if (static_cast<int>(under_way_.size()) < kMostUnderWay) return false;
  LOG_EVERY_T(WARNING, 60) << "the disk has not finished the last " << under_way_.size()
                           << " checkpoints: none is taken of round " << version;
  return true;
}

void Checkpoints::Begin(int64_t version, TimeUs now) {
  under_way_[version];
  began_at_ = now;
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

void Checkpoints::OrderNow(int64_t version, bool partial, const checkpoint::Progress& progress,
                           TimeUs now) {
  order_ = {version, order_.attempt + 1, partial};
  again_at_ = 0;
  if (unsaved_ == version && give_up_at_ == 0) give_up_at_ = now + limit_;
  under_way_[version] = {order_.attempt, {}, progress, false};
  began_at_ = now;
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
  if (version >= unsaved_) {
    unsaved_ = -1;
    again_at_ = give_up_at_ = 0;
  }
}

bool Checkpoints::TryAgain(int64_t version, TimeUs limit, TimeUs now) {
  if (give_up_at_ == 0) give_up_at_ = now + limit;
  if (now + kPause > give_up_at_) return false;
  unsaved_ = version;
  again_at_ = now + kPause;
  return true;
}

void Checkpoints::OrderLater(int64_t version, TimeUs limit) {
  unsaved_ = version;
  limit_ = limit;
  again_at_ = 1;
  give_up_at_ = 0;
}

bool Checkpoints::IsDueAgain(int64_t version, TimeUs now) const {
  return unsaved_ == version && again_at_ > 0 && now >= again_at_;
}

bool Checkpoints::IsHopeless(TimeUs now) const {
  return give_up_at_ > 0 && now > give_up_at_ + kPause;
}

}  // namespace kumo
