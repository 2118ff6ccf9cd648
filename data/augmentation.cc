#include "data/augmentation.h"

#include "common/base/rng.h"

namespace kumo {

Window DrawWindow(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t sample) {
  Rng rng(seed, RngPurpose::kAugment, static_cast<uint64_t>(epoch), static_cast<uint64_t>(sample));
  const auto place = [&] {
    const uint64_t places = 2 * static_cast<uint64_t>(augmentation.pad) + 1;
    return static_cast<int16_t>(static_cast<int>(rng.NextBelow(places)) - augmentation.pad);
  };
  Window window;
  window.top = place();
  window.left = place();
  window.mirrored = augmentation.flip && rng.NextBelow(2) == 1;
  return window;
}

}  // namespace kumo
