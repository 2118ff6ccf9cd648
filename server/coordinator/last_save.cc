#include "server/coordinator/last_save.h"

namespace kumo {
namespace {

constexpr TimeUs kPause = 5 * kSecond;

}  // namespace

void LastSave::OrderLater(int64_t version, TimeUs limit) {
  version_ = version;
  limit_ = limit;
  again_at_ = 1;
  give_up_at_ = 0;
}

bool LastSave::TryAgain(int64_t version, TimeUs limit, TimeUs now) {
  if (give_up_at_ == 0) give_up_at_ = now + limit;
  if (now + kPause > give_up_at_) return false;
  version_ = version;
  again_at_ = now + kPause;
  return true;
}

void LastSave::OnOrdered(int64_t version, TimeUs now) {
  again_at_ = 0;
  if (version_ == version && give_up_at_ == 0) give_up_at_ = now + limit_;
}

void LastSave::OnSaved(int64_t version) {
  if (version >= version_) Forget();
}

void LastSave::Forget() {
  version_ = -1;
  again_at_ = give_up_at_ = 0;
}

bool LastSave::IsDueAgain(int64_t version, TimeUs now) const {
  return version_ == version && again_at_ > 0 && now >= again_at_;
}

bool LastSave::IsHopeless(TimeUs now) const {
  return give_up_at_ > 0 && now > give_up_at_ + kPause;
}

}  // namespace kumo
