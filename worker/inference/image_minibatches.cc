#include "worker/inference/image_minibatches.h"

#include <utility>

#include "common/base/thread.h"

namespace kumo {

ImageMinibatches::ImageMinibatches(const InputImages& images, const Form& form)
    : form_(form),
      sample_bytes_(form.target.extents[0] * form.target.extents[1] * form.target.extents[2]),
      thread_(StartThread([this, &images] { ReadAll(images); })) {}

ImageMinibatches::~ImageMinibatches() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

Result<std::optional<ImageMinibatch>> ImageMinibatches::Next() {
  MutexLock lock(mutex_);
  while (!ready_ && !end_) changed_.Wait(mutex_);
  if (!ready_ && !end_->ok()) return *end_;
  std::optional<ImageMinibatch> next = std::exchange(ready_, std::nullopt);
  changed_.NotifyAll();
  return next;
}

void ImageMinibatches::ReadAll(const InputImages& images) {
  ImageMaker maker;
  ImageMinibatch filling = Empty();
  const auto decode = [&](const Result<std::span<const uint8_t>>& content,
                          std::span<std::byte> pixels) -> Result<ImageHeader> {
    if (!content.ok()) return content.status();
    return maker.Make(*content, form_.target,
                      {reinterpret_cast<uint8_t*>(pixels.data()), pixels.size()});
  };
  const auto see = [&](int64_t number, const std::string& file,
                       const Result<std::span<const uint8_t>>& content) -> Status {
    ++filling.seen;
    const std::span<std::byte> room =
        std::span(filling.pixels)
            .subspan(std::ssize(filling.images) * sample_bytes_, sample_bytes_);
    const Result<ImageHeader> header = decode(content, room);
    if (!header.ok()) {
      if (!IsOfOneImage(header.status())) return header.status().WithContext(file);
      filling.damaged.push_back(file + ": " + header.status().message());
      return OkStatus();
    }
    filling.images.push_back({number, file, header->height, header->width, {}});
    if (form_.keeps_contents)
      filling.images.back().content.assign(content->begin(), content->end());
    if (std::ssize(filling.images) < form_.batch) return OkStatus();
    ImageMinibatch full = std::exchange(filling, Empty());
    filling.seen = full.seen;
    return Offer(std::move(full));
  };
  Status status = images.Read(see);
  // The rest, after an error too: it names the damaged images before.
  if (!filling.images.empty() || !filling.damaged.empty()) {
    const Status offered = Offer(std::move(filling));
    if (status.ok()) status = offered;
  }
  MutexLock lock(mutex_);
  end_ = std::move(status);
  changed_.NotifyAll();
}

Status ImageMinibatches::Offer(ImageMinibatch minibatch) {
  MutexLock lock(mutex_);
  while (ready_ && !stopped_) changed_.Wait(mutex_);
  if (stopped_) return Unavailable("the consumer has stopped");
  ready_ = std::move(minibatch);
  changed_.NotifyAll();
  return OkStatus();
}

ImageMinibatch ImageMinibatches::Empty() const {
  ImageMinibatch minibatch;
  minibatch.pixels.resize(form_.batch * sample_bytes_);
  return minibatch;
}

}  // namespace kumo
