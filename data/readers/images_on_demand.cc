#include "data/readers/images_on_demand.h"

#include <span>
#include <utility>

#include <glog/logging.h>

namespace kumo {
namespace {

ImageSet WithoutFiles(ImageSet set) {
  set.files = {};
  return set;
}

std::vector<std::unique_ptr<const ImageStore>> OneStore(std::unique_ptr<const ImageStore> store) {
  std::vector<std::unique_ptr<const ImageStore>> stores;
  stores.push_back(std::move(store));
  return stores;
}

}  // namespace

ImagesOnDemand::ImagesOnDemand(ImageSet set, std::unique_ptr<const ImageStore> store,
                               ImageTarget target, const ReaderRequest& request)
    : set_(WithoutFiles(std::move(set))),
      loader_(set_.name, OneStore(std::move(store)), std::move(target), request),
      fields_(LabelledImage(loader_.target().extents)),
      classes_(request.classes) {
  CHECK_EQ(loader_.size(), size()) << name();
}

Status ImagesOnDemand::ReadKey(const SampleKey& key, Sample* sample) const {
  KUMO_ASSIGN_OR_RETURN(const ImageLoader::Loaded loaded, loader_.Load(key.sample, sample));
  sample->Borrow(kLabel, std::as_bytes(std::span(set_.labels).subspan(loaded.index, 1)));
  return OkStatus();
}

}  // namespace kumo
