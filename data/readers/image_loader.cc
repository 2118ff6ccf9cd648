#include "data/readers/image_loader.h"

#include <algorithm>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "data/readers/image_set.h"
#include "data/samples/dataset.h"

namespace kumo {
namespace {

constexpr size_t kLoggedImages = 20;

std::vector<std::vector<int64_t>> BeginsOf(const std::vector<ImageColumn>& columns) {
  std::vector<std::vector<int64_t>> begins;
  for (const ImageColumn& column : columns) {
    std::vector<int64_t>& of_column = begins.emplace_back(1, 0);
    for (const auto& store : column.stores) {
      of_column.push_back(of_column.back() + store->size());
    }
  }
  return begins;
}

std::vector<ImageColumn> OneColumn(std::vector<std::unique_ptr<const ImageStore>> stores,
                                   ImageTarget target) {
  std::vector<ImageColumn> columns;
  columns.push_back({kImage, std::move(stores), std::move(target)});
  return columns;
}

// An error for the first pixel of a class that there is not.
Status CheckClasses(std::span<const uint8_t> mask, int64_t width, int classes) {
  const auto odd = std::ranges::find_if(
      mask, [&](uint8_t number) { return number >= classes && number != kIgnoredClass; });
  if (odd == mask.end()) return OkStatus();
  const int64_t at = odd - mask.begin();
  return FailedPrecondition("its mask has class " + std::to_string(*odd) + " in row " +
                            std::to_string(at / width) + ", column " + std::to_string(at % width) +
                            " of the sample, but data.classes = " + std::to_string(classes) +
                            "; correct data.classes or the mask, where 255 is no class");
}

}  // namespace

ImageLoader::ImageLoader(std::string name, std::vector<ImageColumn> columns,
                         const ReaderRequest& request, std::map<int64_t, Status> damaged)
    : name_(std::move(name)),
      columns_(std::move(columns)),
      begins_(BeginsOf(columns_)),
      skip_damaged_(request.skip_damaged),
      parts_(PartsToKeep(request, size())),
      survey_(request.survey != nullptr),
      damaged_at_opening_(std::move(damaged)) {
  CHECK_GE(size(), 1) << name_;
  for (const std::vector<int64_t>& begins : begins_) CHECK_EQ(begins.back(), size()) << name_;
}

ImageLoader::ImageLoader(std::string name, std::vector<std::unique_ptr<const ImageStore>> stores,
                         ImageTarget target, const ReaderRequest& request,
                         std::map<int64_t, Status> damaged)
    : ImageLoader(std::move(name), OneColumn(std::move(stores), std::move(target)), request,
                  std::move(damaged)) {}

ImageLoader::Place ImageLoader::PlaceOf(int64_t index, size_t column) const {
  const std::vector<int64_t>& begins = begins_[column];
  const auto store = std::ranges::upper_bound(begins, index) - begins.begin() - 1;
  return {*columns_[column].stores[store], index - begins[store]};
}

std::string ImageLoader::NameOf(int64_t index, size_t column) const {
  const Place place = PlaceOf(index, column);
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
  std::vector<std::pair<std::string, Status>> found;
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t next = (index + i) % size();
    if (!parts_.empty() && parts_[next] != parts_[index]) continue;
    if (skip_damaged_ && IsKnownAsDamaged(next)) continue;
    size_t column = 0;
    Result<Loaded> loaded = LoadOne(next, workplace, sample, &column);
    if (loaded.ok()) {
      for (const auto& [file, why] : found) WarnOfReplaced(file, why, NameOf(next));
      return loaded;
    }
    const Status& error = loaded.status();
    const std::string file = NameOf(next, column);
    if (survey_) return Status(error.code(), file + ": " + error.message());
    if (!skip_damaged_ || !IsDamage(error)) return OfImage(file, error);
    if (NoteDamage(next)) found.emplace_back(file, error);
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
                                                 Sample* sample, size_t* column) const {
  const auto damaged = damaged_at_opening_.find(index);
  if (damaged != damaged_at_opening_.end()) return damaged->second;
  Loaded loaded{index};
  for (*column = 0; *column < columns_.size(); ++*column) {
    KUMO_ASSIGN_OR_RETURN(const ImageHeader header, LoadImage(index, *column, workplace, sample));
    if (*column == 0) {
      loaded.height = header.height;
      loaded.width = header.width;
    }
    const ImageColumn& read = columns_[*column];
    if (!read.target.mask) continue;
    if (header.height != loaded.height || header.width != loaded.width) {
      const std::vector<int64_t> of_mask = {header.height, header.width};
      const std::vector<int64_t> of_picture = {loaded.height, loaded.width};
      return InvalidArgument("the mask is " + ExtentsText(of_mask) + ", but its picture " +
                             NameOf(index) + " is " + ExtentsText(of_picture) +
                             "; store it in the size of the picture");
    }
    KUMO_RETURN_IF_ERROR(
        CheckClasses(sample->pixels(read.field), sample->extents(read.field)[1], read.classes));
  }
  return loaded;
}

Result<ImageHeader> ImageLoader::LoadImage(int64_t index, size_t column, Workplace& workplace,
                                           Sample* sample) const {
  const ImageColumn& read = columns_[column];
  const Place place = PlaceOf(index, column);
  KUMO_RETURN_IF_ERROR(place.store.Read(place.index, &workplace.file));
  ImageTarget target = read.target;
  ImageDecoder& decoder = workplace.maker.decoder();
  ImageHeader header;
  if (target.of_any_size()) {
    KUMO_ASSIGN_OR_RETURN(header, ImageDecoder::ReadHeader(workplace.file));
    target.extents = {target.extents[0], header.height, header.width};
  }
  const std::span<const int64_t> extents =
      std::span<const int64_t>(target.extents).last(target.mask ? 2 : 3);
  const std::span<uint8_t> pixels = sample->MakePixels(read.field, extents);
  if (!read.target.of_any_size()) return workplace.maker.Make(workplace.file, target, pixels);
  if (target.mask) {
    KUMO_RETURN_IF_ERROR(decoder.DecodeMaskTo(workplace.file, header, pixels));
  } else {
    KUMO_RETURN_IF_ERROR(
        decoder.DecodeTo(workplace.file, header, static_cast<int>(target.extents[0]), pixels));
  }
  return header;
}

Result<ImageTarget> TargetOfFirst(const std::string& name,
                                  std::span<const ImageStore* const> stores,
                                  const std::map<int64_t, Status>& damaged,
                                  const ReaderRequest& request) {
  const bool passes = request.skip_damaged || request.survey != nullptr;
  std::vector<uint8_t> buffer;
  Status failed;
  int64_t number = 0;
  for (const ImageStore* const store : stores) {
    for (int64_t i = 0; i < store->size(); ++i, ++number) {
      if (damaged.contains(number)) continue;
      const Result<ImageHeader> header = store->ReadHeader(i, &buffer);
      if (header.ok()) return ImageTarget{{header->channels, header->height, header->width}};
      failed = OfImage(store->Name(i), header.status());
      if (!passes || !IsDamage(header.status())) return failed;
    }
  }
  return DataLoss(name + ": all images are damaged; " + failed.message());
}

}  // namespace kumo
