#include "data/readers/image_loader.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "data/readers/image_set.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

constexpr size_t kLoggedImages = 20;

std::vector<int64_t> BeginsOf(const std::vector<std::unique_ptr<const ImageStore>>& stores) {
  std::vector<int64_t> begins = {0};
  for (const auto& store : stores) begins.push_back(begins.back() + store->size());
  return begins;
}

}  // namespace

ImageLoader::ImageLoader(std::string name, std::vector<std::unique_ptr<const ImageStore>> stores,
                         ImageTarget target, const ReaderRequest& request,
                         std::map<int64_t, Status> damaged)
    : name_(std::move(name)),
      stores_(std::move(stores)),
      begins_(BeginsOf(stores_)),
      target_(std::move(target)),
      skip_damaged_(request.skip_damaged),
      parts_(PartsToKeep(request, size())),
      survey_(request.survey != nullptr),
      damaged_at_opening_(std::move(damaged)) {
  CHECK_GE(size(), 1) << name_;
}

ImageLoader::Place ImageLoader::PlaceOf(int64_t index) const {
  const auto store = std::ranges::upper_bound(begins_, index) - begins_.begin() - 1;
  return {*stores_[store], index - begins_[store]};
}

std::string ImageLoader::NameOf(int64_t index) const {
  const Place place = PlaceOf(index);
  return place.store.Name(place.index);
}

Result<ImageLoader::Loaded> ImageLoader::Load(int64_t index, Sample* sample) const {
  CHECK(index >= 0 && index < size()) << name_ << ": sample " << index << " of " << size();
  std::unique_ptr<Workplace> workplace = TakeWorkplace();
  Result<Loaded> loaded = LoadOrReplace(index, *workplace, sample);
  MutexLock lock(mutex_);
  idle_.push_back(std::move(workplace));
  return loaded;
}

Result<ImageLoader::Loaded> ImageLoader::LoadOrReplace(int64_t index, Workplace& workplace,
                                                       Sample* sample) const {
  std::vector<std::pair<int64_t, Status>> found;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t next = (index + i) % size();
    if (!parts_.empty() && parts_[next] != parts_[index]) continue;
    if (skip_damaged_ && IsKnownAsDamaged(next)) continue;
    Result<Loaded> loaded = LoadOne(next, workplace, sample);
    if (loaded.ok()) {
      for (const auto& [damaged, why] : found) WarnOfReplaced(NameOf(damaged), why, NameOf(next));
      return loaded;
    }
    const Status& error = loaded.status();
    if (survey_) return Status(error.code(), NameOf(next) + ": " + error.message());
    if (!skip_damaged_ || !IsDamage(error)) return OfImage(NameOf(next), error);
    if (NoteDamage(next)) found.emplace_back(next, error);
  }
  return DataLoss(name_ + (parts_.empty() ? ": all images are damaged"
                                          : ": all images of one part are damaged"));
}

bool ImageLoader::NoteDamage(int64_t index) const {
  MutexLock lock(mutex_);
  if (!damaged_.insert(index).second) return false;
  if (damaged_.size() == kLoggedImages + 1) {
    LOG(WARNING) << name_ << ": more than " << kLoggedImages
                 << " images are damaged; kumo check --data lists all of them";
  }
  return damaged_.size() <= kLoggedImages;
}

bool ImageLoader::IsKnownAsDamaged(int64_t index) const {
  MutexLock lock(mutex_);
  return damaged_.contains(index);
}

std::unique_ptr<ImageLoader::Workplace> ImageLoader::TakeWorkplace() const {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Workplace> workplace = std::move(idle_.back());
      idle_.pop_back();
      return workplace;
    }
  }
  return std::make_unique<Workplace>();
}

Result<ImageLoader::Loaded> ImageLoader::LoadOne(int64_t index, Workplace& workplace,
                                                 Sample* sample) const {
  const auto damaged = damaged_at_opening_.find(index);
  if (damaged != damaged_at_opening_.end()) return damaged->second;
  const Place place = PlaceOf(index);
  KUMO_RETURN_IF_ERROR(place.store.Read(place.index, &workplace.file));
  if (!target_.of_any_size()) {
    KUMO_ASSIGN_OR_RETURN(
        const ImageHeader header,
        workplace.maker.Make(workplace.file, target_, sample->MakePixels(kImage, target_.extents)));
    return Loaded{index, header.height, header.width};
  }
  ImageDecoder& decoder = workplace.maker.decoder();
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, ImageDecoder::ReadHeader(workplace.file));
  const std::vector<int64_t> extents = {target_.extents[0], header.height, header.width};
  KUMO_RETURN_IF_ERROR(decoder.DecodeTo(workplace.file, header, static_cast<int>(extents[0]),
                                        sample->MakePixels(kImage, extents)));
  return Loaded{index, header.height, header.width};
}

}  // namespace kumo
