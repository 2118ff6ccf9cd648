#include "common/codec/codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "common/codec/kernel.h"

namespace kumo {

static_assert(std::endian::native == std::endian::little,
              "the kernels write the wire's little-endian numbers as they are in memory");

static_assert(Codec::kBucket == kCodecBucket);

// The one list of codecs, in the order of their ids: a new one gets a file beside int8.cc and a
// line here and in AllCodecs.
KUMO_DECLARE_PER_ISA(const CodecKernel, kFp32)
KUMO_DECLARE_PER_ISA(const CodecKernel, kFp16)
KUMO_DECLARE_PER_ISA(const CodecKernel, kBf16)
KUMO_DECLARE_PER_ISA(const CodecKernel, kInt8)
KUMO_DECLARE_PER_ISA(const CodecKernel, kOneBit)

namespace {

class KernelCodec final : public Codec {
 public:
  explicit KernelCodec(const CodecKernel& kernel) : kernel_(kernel) {}

  CodecId id() const override { return CodecId{kernel_.id}; }
  std::string_view name() const override { return kernel_.name; }
  bool lossy() const override { return kernel_.lossy; }

  size_t EncodedBytes(size_t n) const override {
    const size_t rest = n % kBucket;
    return n / kBucket * kernel_.bucket_bytes(kBucket) +
           (rest == 0 ? 0 : kernel_.bucket_bytes(rest));
  }

  int64_t Encode(std::span<const float> x, std::span<float> residual,
                 std::span<std::byte> out) const override {
    CHECK_EQ(out.size(), EncodedBytes(x.size()));
    CHECK(residual.empty() || residual.size() == x.size());
    return kernel_.encode(x.data(), residual.empty() ? nullptr : residual.data(), x.size(),
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
  // Where the bucket that starts at number `first` lies.
  const unsigned char* At(std::span<const std::byte> encoded, size_t n, size_t first,
                          size_t count) const {
    CHECK_EQ(encoded.size(), EncodedBytes(n));
    CHECK_EQ(first % kBucket, 0u);
    CHECK(first <= n && count <= n - first);
    return reinterpret_cast<const unsigned char*>(encoded.data()) +
           first / kBucket * kernel_.bucket_bytes(kBucket);
  }

  const CodecKernel& kernel_;
};

struct CodecList {
  explicit CodecList(Isa isa)
      : codecs{KernelCodec(KUMO_AT_ISA(isa, kFp32)), KernelCodec(KUMO_AT_ISA(isa, kFp16)),
               KernelCodec(KUMO_AT_ISA(isa, kBf16)), KernelCodec(KUMO_AT_ISA(isa, kInt8)),
               KernelCodec(KUMO_AT_ISA(isa, kOneBit))},
        pointers{&codecs[0], &codecs[1], &codecs[2], &codecs[3], &codecs[4]} {}
  CodecList(const CodecList&) = delete;
  CodecList& operator=(const CodecList&) = delete;

  const std::array<KernelCodec, 5> codecs;
  const std::array<const Codec*, 5> pointers;
};

template <typename Matches>
Result<const Codec*> Find(const std::string& wanted, Matches matches) {
  std::string names;
  for (const Codec* codec : AllCodecs()) {
    if (matches(*codec)) return codec;
    names += (names.empty() ? "" : ", ") + std::string(codec->name());
  }
  return NotFound("there is no codec " + wanted + "; there are: " + names);
}

}  // namespace

std::span<const Codec* const> AllCodecs(Isa isa) {
  CHECK(isa <= DetectIsa()) << "this machine does not run that instruction-set level";
  static const CodecList baseline(Isa::kBaseline);
  static const CodecList v3(Isa::kV3);
  static const CodecList v4(Isa::kV4);
  return isa == Isa::kV4 ? v4.pointers : isa == Isa::kV3 ? v3.pointers : baseline.pointers;
}

std::span<const Codec* const> AllCodecs() {
  static const Isa isa = DetectIsa();
  return AllCodecs(isa);
}

Result<const Codec*> FindCodec(std::string_view name) {
  return Find("'" + std::string(name) + "'",
              [name](const Codec& codec) { return codec.name() == name; });
}

Result<const Codec*> FindCodec(uint32_t id) {
  return Find("number " + std::to_string(id),
              [id](const Codec& codec) { return static_cast<uint32_t>(codec.id()) == id; });
}

}  // namespace kumo
