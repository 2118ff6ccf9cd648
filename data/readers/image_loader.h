// Image loader: decodes single images of a set at each read, and reads the next valid image in
// place of a damaged one.
//
// Thread-safe: concurrent readers take a decoder each from a pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "data/readers/image_store.h"
#include "data/readers/registry.h"
#include "data/samples/sample.h"
#include "data/samples/validation_split.h"

namespace kumo {

class ImageLoader {
 public:
  // name: of the set, in messages. The set's images are those of the stores, one store after the
  // other; at least one. damaged: images that are known as damaged, with the reasons.
  ImageLoader(std::string name, std::vector<std::unique_ptr<const ImageStore>> stores,
              ImageTarget target, const ReaderRequest& request,
              std::map<int64_t, Status> damaged = {});

  int64_t size() const { return begins_.back(); }
  const ImageTarget& target() const { return target_; }

  // An image that was read.
  struct Loaded {
    int64_t index = 0;
    // Size in its file, upright; the sample's may be another one.
    int64_t height = 0;
    int64_t width = 0;
  };
  // Reads the image into the sample's field kImage. DataLoss, InvalidArgument or Unavailable, with
  // the file, if the image is damaged, of another size, or missing. If damaged images are skipped,
  // the next valid image is read instead of one (OpenImageSet); DataLoss if there is none. Requires
  // an index in [0, size()).
  Result<Loaded> Load(int64_t index, Sample* sample) const;

 private:
  // Buffers of one reading thread.
  struct Workplace {
    ImageMaker maker;
    std::vector<uint8_t> file;
  };
  // An image in its store.
  struct Place {
    const ImageStore& store;
    int64_t index;
  };

  Place PlaceOf(int64_t index) const;
  std::string NameOf(int64_t index) const;
  std::unique_ptr<Workplace> TakeWorkplace() const;
  Result<Loaded> LoadOrReplace(int64_t index, Workplace& workplace, Sample* sample) const;
  Result<Loaded> LoadOne(int64_t index, Workplace& workplace, Sample* sample) const;
  bool IsKnownAsDamaged(int64_t index) const;
  // Returns true if the image is to be logged.
  bool NoteDamage(int64_t index) const;

  const std::string name_;
  const std::vector<std::unique_ptr<const ImageStore>> stores_;
  const std::vector<int64_t> begins_;  // first image of each store, and the number of images
  const ImageTarget target_;
  const bool skip_damaged_;
  const std::vector<SplitPart> parts_;  // by image; empty: one part
  const bool survey_;
  const std::map<int64_t, Status> damaged_at_opening_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Workplace>> idle_ KUMO_GUARDED_BY(mutex_);
  // Damaged images found so far, so that each is decoded and logged once.
  mutable std::unordered_set<int64_t> damaged_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace kumo
