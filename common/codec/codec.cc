#include "common/codec/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "common/codec/kernel.h"
#include "common/codec/topk2bit_codec.h"
#include "common/codec/topk_codec.h"
#include "common/codec/topk_kernel.h"

namespace kumo {

static_assert(std::endian::native == std::endian::little,
              "the kernels write the wire's little-endian numbers as they are in memory");

static_assert(Codec::kBucket == kCodecBucket);

// The list of codecs of buckets; topk and topk2bit, which select, have classes of their own. A new
// codec is a file beside int8.cc or a format in packed.cc, an id in kernel.h, and its place here.
// The words of sync.push_codec come from this list, in the order of the ids.
// clang-format off
#define KUMO_CODECS(DO)                                                                  \
  DO(kFp32) DO(kFp16) DO(kBf16) DO(kInt8) DO(kOneBit) DO(kInt4) DO(kE3m0) DO(kTwoBit)    \
  DO(kInt8Stochastic) DO(kInt4Stochastic) DO(kInt8Cntk) DO(kInt4Cntk) DO(kTwoBitCntk)
// clang-format on

#define KUMO_DECLARE_CODEC(name) KUMO_DECLARE_PER_ISA(const CodecKernel, name)
KUMO_CODECS(KUMO_DECLARE_CODEC)
#undef KUMO_DECLARE_CODEC
KUMO_DECLARE_PER_ISA(const TopkKernel, kTopkKernel)
KUMO_DECLARE_PER_ISA(const Topk2bitKernel, kTopk2bitKernel)

namespace {

class KernelCodec final : public Codec {
 public:
  explicit KernelCodec(const CodecKernel& kernel, const CodecSettings& settings = {})
      : kernel_(kernel),
        settings_(settings),
        bucket_bytes_(kernel.bucket_bytes(kBucket)),
        granule_bits_(std::countr_zero(kernel.granule)),
        granule_bytes_(kernel.bucket_bytes(kernel.granule)) {
    CHECK(std::has_single_bit(kernel.granule) && kernel.granule <= kBucket);
  }

  CodecId id() const override { return kernel_.id; }
  std::string_view name() const override { return kernel_.name; }
  bool lossless() const override { return kernel_.lossless; }
  bool codes_weights() const override { return kernel_.codes_weights; }
  const CodecTraits& traits() const override { return kernel_.traits; }
  const CodecSettings& settings() const override { return settings_; }
  const CodecKernel& kernel() const { return kernel_; }

  size_t EncodedBytes(size_t n) const override {
    const size_t rest = n % kBucket;
    return n / kBucket * bucket_bytes_ + (rest == 0 ? 0 : kernel_.bucket_bytes(rest));
  }

  size_t granule() const override { return kernel_.granule; }
  bool plain() const override { return kernel_.plain; }
  float largest() const override { return kernel_.largest; }

  int64_t EncodeIn(const EncodeContext& context, std::span<const float> x,
                   std::span<float> residual, std::span<std::byte> out) const override {
    CHECK_EQ(out.size(), EncodedBytes(x.size()));
    CHECK(residual.empty() || residual.size() == x.size());
    return kernel_.encode(settings_, context, x.data(),
                          residual.empty() ? nullptr : residual.data(), x.size(),
                          reinterpret_cast<unsigned char*>(out.data()));
  }

  Status Check(std::span<const std::byte> encoded, size_t n) const override {
    if (encoded.size() != EncodedBytes(n)) {
      return InvalidArgument(std::string(name()) + ": " + std::to_string(n) + " numbers take " +
                             std::to_string(EncodedBytes(n)) + " bytes, not " +
                             std::to_string(encoded.size()));
    }
    const int64_t bad =
        kernel_.first_bad_bucket(reinterpret_cast<const unsigned char*>(encoded.data()), n);
    if (bad < 0) return OkStatus();
    const int64_t first = bad * static_cast<int64_t>(kBucket);
    return InvalidArgument(
        std::string(name()) + ": a number that is not finite among numbers " +
        std::to_string(first) + " to " +
        std::to_string(std::min(first + static_cast<int64_t>(kBucket), static_cast<int64_t>(n)) -
                       1) +
        " of the chunk");
  }

  void DecodeAdd(std::span<const std::byte> encoded, size_t n, size_t first, float scale,
                 std::span<float> sum) const override {
    kernel_.decode_add(At(encoded, n, first, sum.size()), sum.size(), scale, sum.data());
  }

  void Decode(std::span<const std::byte> encoded, size_t n, size_t first,
              std::span<float> out) const override {
    kernel_.decode(At(encoded, n, first, out.size()), out.size(), out.data());
  }

 private:
  // The position of number `first`.
  const unsigned char* At(std::span<const std::byte> encoded, size_t n, size_t first,
                          size_t count) const {
    CHECK_EQ(encoded.size(), EncodedBytes(n));
    CHECK_EQ(first & (kernel_.granule - 1), 0u);
    CHECK(first <= n && count <= n - first);
    return reinterpret_cast<const unsigned char*>(encoded.data()) +
           (first >> granule_bits_) * granule_bytes_;
  }

  const CodecKernel& kernel_;
  const CodecSettings settings_;
  const size_t bucket_bytes_;
  // granule() = 2^granule_bits_: a division takes as long as adding a tile.
  const int granule_bits_;
  const size_t granule_bytes_;
};

Topk2bitCodec::Kernels Topk2bitKernelsAt(Isa isa) {
  return {KUMO_AT_ISA(isa, kTopkKernel), KUMO_AT_ISA(isa, kTopk2bitKernel)};
}

struct CodecList {
#define KUMO_CODEC_AT(name) KernelCodec(KUMO_AT_ISA(isa, name)),
  explicit CodecList(Isa isa)
      : codecs{KUMO_CODECS(KUMO_CODEC_AT)},
        topk(KUMO_AT_ISA(isa, kTopkKernel), At(CodecSettings().values), {}),
        topk2bit(Topk2bitKernelsAt(isa), {}) {
    for (const KernelCodec& codec : codecs) {
      pointers.push_back(&codec);
      choices.push_back({codec.id(), codec.name(), codec.kernel().help});
    }
    pointers.insert(pointers.end(), {&topk, &topk2bit});
    choices.push_back({topk.id(), topk.name(), TopkCodec::kHelp});
    choices.push_back({topk2bit.id(), topk2bit.name(), Topk2bitCodec::kHelp});
    std::ranges::sort(pointers, {}, &Codec::id);
    std::ranges::sort(choices, {}, &Choice<CodecId>::value);
  }
#undef KUMO_CODEC_AT
  CodecList(const CodecList&) = delete;
  CodecList& operator=(const CodecList&) = delete;

  // Requires a codec of kernels.
  const KernelCodec& At(CodecId id) const {
    const auto found = std::ranges::find(codecs, id, &KernelCodec::id);
    CHECK(found != codecs.end());
    return *found;
  }

  const std::vector<KernelCodec> codecs;
  const TopkCodec topk;
  const Topk2bitCodec topk2bit;
  std::vector<const Codec*> pointers;
  std::vector<Choice<CodecId>> choices;
};

const CodecList& ListAt(Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  static const CodecList baseline(Isa::kBaseline);
  static const CodecList v3(Isa::kV3);
  static const CodecList v4(Isa::kV4);
  return isa == Isa::kV4 ? v4 : isa == Isa::kV3 ? v3 : baseline;
}

}  // namespace

int64_t Codec::Encode(std::span<const float> x, std::span<float> residual,
                      std::span<std::byte> out) const {
  return EncodeIn({}, x, residual, out);
}

float Codec::MostWithoutLoss(bool has_residual) const {
  const bool fits_twice = has_residual && largest() < std::numeric_limits<float>::max() / 2;
  return fits_twice ? 2 * largest() : largest();
}

std::string Codec::DescribeMisfit() const {
  if (largest() >= std::numeric_limits<float>::max()) return "infinite or not a number";
  return "infinite, not a number or too large for " + std::string(name()) + ", which ends at " +
         std::to_string(std::lround(largest()));
}

std::span<const Codec* const> AllCodecs(Isa isa) { return ListAt(isa).pointers; }

std::span<const Codec* const> AllCodecs() {
  static const Isa isa = DetectIsa();
  return AllCodecs(isa);
}

std::span<const Choice<CodecId>> ChoicesOf(CodecId) { return ListAt(Isa::kBaseline).choices; }

const Codec& CodecOf(CodecId id) {
  const Result<const Codec*> codec = FindCodec(static_cast<uint32_t>(id));
  CHECK(codec.ok()) << codec.status().message();
  return **codec;
}

// A process has few settings: its job's.
const Codec& CodecOf(CodecId id, const CodecSettings& settings) {
  const Codec& codec = CodecOf(id);
  const CodecTraits& traits = codec.traits();
  const bool has_settings = traits.has_threshold || traits.selects || traits.decays_residual;
  if (!has_settings || codec.settings() == settings) return codec;
  static std::mutex mutex;
  static auto& made = *new std::map<std::tuple<CodecId, float, int, CodecId, float>, const Codec*>;
  const std::lock_guard lock(mutex);
  const Codec*& found =
      made[{id, settings.threshold, settings.kept, settings.values, settings.residual_factor}];
  if (found == nullptr) {
    const Isa isa = DetectIsa();
    const CodecList& list = ListAt(isa);
    if (traits.selects) {
      found = new TopkCodec(KUMO_AT_ISA(isa, kTopkKernel), list.At(settings.values), settings);
    } else if (traits.uses_tensors) {
      found = new Topk2bitCodec(Topk2bitKernelsAt(isa), settings);
    } else {
      found = new KernelCodec(list.At(id).kernel(), settings);
    }
  }
  return *found;
}

Result<const Codec*> FindCodec(uint32_t id) {
  for (const Codec* codec : AllCodecs()) {
    if (static_cast<uint32_t>(codec->id()) == id) return codec;
  }
  return NotFound("there is no codec number " + std::to_string(id) +
                  "; there are: " + ChoiceWords<CodecId>());
}

}  // namespace kumo
