// A dataset of labelled images that are decoded each time when they are read.
//
// Thread-safe: threads that read at once each get a decoder of their own, of those that there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "data/dataset.h"
#include "data/readers/image_maker.h"
#include "data/readers/image_set.h"
#include "data/readers/image_store.h"

namespace kumo {

class ImagesOnDemand final : public Dataset {
 public:
  // set: its labels, its names and its container; `store` has its files.
  ImagesOnDemand(ImageSet set, std::unique_ptr<ImageStore> store, ImageTarget target, int classes);

  int64_t size() const override { return std::ssize(set_.labels); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return set_.class_names; }
  const std::string& name() const override { return set_.name; }
  // DataLoss, InvalidArgument or Unavailable, naming the file, where an image is damaged, of
  // another size, or gone.
  Status ReadKey(const SampleKey& key, Sample* sample) const override;

 private:
  // One thread's.
  struct Workplace {
    ImageMaker maker;
    std::vector<uint8_t> file;
  };
  std::unique_ptr<Workplace> TakeWorkplace() const;
  Status ReadImage(int64_t index, Workplace& workplace, Sample* sample) const;

  const ImageSet set_;  // without its files' names
  const std::unique_ptr<const ImageStore> store_;
  const ImageTarget target_;
  const Fields fields_;
  const int classes_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> idle_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
