// Minibatches of input images: a thread reads and decodes the next one while the network computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "data/readers/image_decoder.h"
#include "worker/inference/input_images.h"

namespace kumo {

struct ImageMinibatch {
  struct Image {
    int64_t number;  // among all (InputImages::See)
    std::string file;
    int64_t height;  // upright, before it was scaled
    int64_t width;
    std::vector<uint8_t> content;  // of the file, if contents are kept
  };
  std::vector<Image> images;
  std::vector<std::byte> pixels;     // of a whole minibatch; zeros behind the last image
  std::vector<std::string> damaged;  // "FILE: REASON" of images that could not be decoded
  int64_t seen = 0;                  // of all images, those that were read so far
};

// Made and used by one thread; `images` outlives it.
class ImageMinibatches {
 public:
  struct Form {
    ImageTarget target;  // of one size
    int batch;
    bool keeps_contents = false;
  };
  ImageMinibatches(const InputImages& images, const Form& form);
  // Without waiting for images that nobody took.
  ~ImageMinibatches();
  ImageMinibatches(const ImageMinibatches&) = delete;
  ImageMinibatches& operator=(const ImageMinibatches&) = delete;

  // The next minibatch, full but for the last; nullopt behind that. Damaged images are left out. An
  // error that ends reading (of an archive, of memory) comes behind what was read before it.
  Result<std::optional<ImageMinibatch>> Next() KUMO_EXCLUDES(mutex_);

 private:
  // The thread.
  void ReadAll(const InputImages& images) KUMO_EXCLUDES(mutex_);
  // Waits until the minibatch before was taken, and offers this one. Unavailable if nobody wants
  // it.
  Status Offer(ImageMinibatch minibatch) KUMO_EXCLUDES(mutex_);
  ImageMinibatch Empty() const;

  const Form form_;
  int64_t sample_bytes_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<ImageMinibatch> ready_ KUMO_GUARDED_BY(mutex_);
  std::optional<Status> end_ KUMO_GUARDED_BY(mutex_);  // how reading ended
  bool stopped_ KUMO_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace kumo
