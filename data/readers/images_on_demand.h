// Dataset of labelled images that are decoded at each read. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "data/readers/image_loader.h"
#include "data/readers/image_set.h"
#include "data/readers/image_store.h"
#include "data/samples/dataset.h"

namespace kumo {

class ImagesOnDemand final : public Dataset {
 public:
  // set: labels, names and container; `store` has the files.
  ImagesOnDemand(ImageSet set, std::unique_ptr<const ImageStore> store, ImageTarget target,
                 const ReaderRequest& request);

  int64_t size() const override { return std::ssize(set_.labels); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return classes_; }
  std::span<const std::string> class_names() const override { return set_.class_names; }
  std::vector<int32_t> SampleClasses() const override { return set_.labels; }
  const DataNotes& notes() const override { return set_.notes; }
  const std::string& name() const override { return set_.name; }
  // The errors of ImageLoader::Load.
  Status ReadKey(const SampleKey& key, Sample* sample) const override;

 private:
  const ImageSet set_;  // without file names
  const ImageLoader loader_;
  const Fields fields_;
  const int classes_;
};

}  // namespace kumo
