#include "data/readers/images_on_demand.h"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include "data/memory_dataset.h"

namespace kumo {
namespace {

constexpr int kImage = 0;  // fields
constexpr int kLabel = 1;

ImageSet WithoutFiles(ImageSet set) {
  set.files = {};
  return set;
}

}  // namespace

ImagesOnDemand::ImagesOnDemand(ImageSet set, std::unique_ptr<ImageStore> store, ImageTarget target,
                               int classes)
    : set_(WithoutFiles(std::move(set))),
      store_(std::move(store)),
      target_(std::move(target)),
      fields_(LabelledImage(target_.extents)),
      classes_(classes) {
  CHECK_EQ(store_->size(), size()) << name();
}

Status ImagesOnDemand::ReadKey(const SampleKey& key, Sample* sample) const {
  const int64_t index = key.sample;
  CHECK(index >= 0 && index < size()) << name() << ": sample " << index << " of " << size();
  std::unique_ptr<Workplace> workplace = TakeWorkplace();
  const Status read = ReadImage(index, *workplace, sample);
  sample->Borrow(kLabel, std::as_bytes(std::span(set_.labels).subspan(index, 1)));
  MutexLock lock(mutex_);
  idle_.push_back(std::move(workplace));
  if (read.ok()) return read;
  return {read.code(), set_.container.Name(store_->name(index)) + ": " + read.message() +
                           (IsDamage(read) ? "; mend or remove it" : "")};
}

std::unique_ptr<ImagesOnDemand::Workplace> ImagesOnDemand::TakeWorkplace() const {
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

Status ImagesOnDemand::ReadImage(int64_t index, Workplace& workplace, Sample* sample) const {
  KUMO_RETURN_IF_ERROR(store_->Read(index, &workplace.file));
  if (!target_.of_any_size()) {
    return workplace.maker.Make(workplace.file, target_,
                                sample->MakePixels(kImage, target_.extents));
  }
  ImageDecoder& decoder = workplace.maker.decoder();
  KUMO_ASSIGN_OR_RETURN(const ImageHeader header, decoder.ReadHeader(workplace.file));
  const std::vector<int64_t> extents = {target_.extents[0], header.height, header.width};
  return decoder.DecodeTo(workplace.file, header, static_cast<int>(extents[0]),
                          sample->MakePixels(kImage, extents));
}

}  // namespace kumo
