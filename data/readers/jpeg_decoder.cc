#include "data/readers/jpeg_decoder.h"

// libjpeg's headers need these two, and jerror.h the switches of jpeglib.h.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <array>
#include <csetjmp>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include "data/samples/pixel_kernels.h"

namespace kumo {
namespace {

constexpr int kInks = 4;
constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr unsigned kLongestMarker = 0xffff;
// Otherwise a small progressive file could take minutes.
constexpr int kMostScans = 500;

// True if the warning means that pixels are lost.
bool LosesPixels(int warning) {
  return warning == JWRN_HIT_MARKER || warning == JWRN_HUFF_BAD_CODE ||
         warning == JWRN_ARITH_BAD_CODE || warning == JWRN_MUST_RESYNC;
}

// One image. libjpeg reports errors by a jump out of its functions, so everything that calls them
// runs inside Try and owns nothing itself.
class Jpeg {
 public:
  explicit Jpeg(std::span<const uint8_t> file) : file_(file) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { Of(info).Fail(); };
    errors_.output_message = [](j_common_ptr) {};
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level < 0) Of(info).Warn(info->err->msg_code);
    };
    progress_.progress_monitor = [](j_common_ptr info) { Of(info).CheckScans(); };
  }
  ~Jpeg() { jpeg_destroy_decompress(&info_); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;

  bool ReadHeader() {
    return Try([this] {
      jpeg_create_decompress(&info_);
      info_.progress = &progress_;
      jpeg_mem_src(&info_, file_.data(), static_cast<unsigned long>(file_.size()));
      jpeg_save_markers(&info_, kExifMarker, kLongestMarker);
      jpeg_read_header(&info_, TRUE);
    });
  }

  // Rows of info().output_components bytes a pixel.
  bool Decode(J_COLOR_SPACE colours, uint8_t* rows) {
    const bool decoded = Try([&] {
      info_.out_color_space = colours;
      info_.dct_method = JDCT_ISLOW;
      jpeg_start_decompress(&info_);
      const size_t stride = size_t{info_.output_width} * info_.output_components;
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row = rows + info_.output_scanline * stride;
        jpeg_read_scanlines(&info_, &row, 1);
      }
      whole_ = HasAllScans();
      jpeg_finish_decompress(&info_);
    });
    if (decoded && ended_early_ && !whole_) {
      text_ = {"the file ends before the last scan"};
      return false;
    }
    // Behind the end libjpeg decodes arithmetic codes from zeros, without a warning of lost pixels.
    if (decoded && ended_early_ && info_.arith_code != 0) {
      text_ = {"the file ends before its end marker"};
      return false;
    }
    return decoded;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  std::string reason() const { return text_.data(); }

 private:
  static Jpeg& Of(j_common_ptr info) { return *static_cast<Jpeg*>(info->client_data); }

  template <typename Step>
  bool Try(const Step& step) {
    if (setjmp(jump_) != 0) return false;
    step();
    return true;
  }

  [[noreturn]] void Fail() {
    (*errors_.format_message)(reinterpret_cast<j_common_ptr>(&info_), text_.data());
    std::longjmp(jump_, 1);
  }

  void Warn(int warning) {
    if (LosesPixels(warning)) Fail();
    if (warning == JWRN_JPEG_EOF) ended_early_ = true;
  }

  void CheckScans() {
    if (info_.input_scan_number <= kMostScans) return;
    text_ = {"too many scans"};
    std::longjmp(jump_, 1);
  }

  // True if each component, and of a progressive image each bit of each coefficient, was in a scan.
  bool HasAllScans() const {
    for (int i = 0; i < info_.num_components; ++i) {
      if (info_.comp_info[i].quant_table == nullptr) return false;
      if (info_.coef_bits == nullptr) continue;
      for (const int missing : info_.coef_bits[i]) {
        if (missing != 0) return false;
      }
    }
    return true;
  }

  const std::span<const uint8_t> file_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX> text_{};
  bool ended_early_ = false;
  bool whole_ = false;
};

Status Damaged(const std::string& what, const Jpeg& jpeg) {
  return DataLoss(what + " (" + jpeg.reason() + ")");
}

// a b / 255, rounded.
uint8_t Product(int a, int b) {
  const int product = a * b + 128;
  return static_cast<uint8_t>((product + (product >> 8)) >> 8);
}

// Adobe's files, which all say so, store inks inverted: 255 means none.
void InksToColours(std::span<const uint8_t> inks, bool inverted, std::span<uint8_t> colours) {
  const int flip = inverted ? 0 : 255;
  for (size_t i = 0; i < colours.size() / kColours; ++i) {
    const uint8_t* ink = inks.data() + i * kInks;
    for (int c = 0; c < kColours; ++c) {
      colours[i * kColours + c] = Product(ink[c] ^ flip, ink[3] ^ flip);
    }
  }
}

}  // namespace

Result<ImageHeader> ReadJpegHeader(std::span<const uint8_t> file) {
  Jpeg jpeg(file);
  if (!jpeg.ReadHeader()) return Damaged("the JPEG's header is damaged", jpeg);
  const jpeg_decompress_struct& info = jpeg.info();
  if (info.jpeg_color_space == JCS_UNKNOWN) {
    return InvalidArgument("the JPEG has " + std::to_string(info.num_components) +
                           " channels of unknown colours; convert it to RGB");
  }
  ImageHeader header;
  header.inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  header.channels = info.jpeg_color_space == JCS_GRAYSCALE ? 1 : kColours;
  header.height = info.image_height;
  header.width = info.image_width;
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr;
       marker = marker->next) {
    const int orientation = OrientationIn({marker->data, marker->data_length});
    if (orientation == 1) continue;
    header.orientation = orientation;
    break;
  }
  if (header.swaps_sides()) std::swap(header.height, header.width);
  return header;
}

Status DecodeJpeg(std::span<const uint8_t> file, const ImageHeader& header, bool grey,
                  std::span<uint8_t> pixels) {
  const int channels = grey ? 1 : kColours;
  CHECK_EQ(std::ssize(pixels), header.height * header.width * channels);
  CHECK(!header.inks || !grey);
  std::vector<uint8_t> inks;
  if (header.inks) inks.resize(pixels.size() / kColours * kInks);
  Jpeg jpeg(file);
  const J_COLOR_SPACE colours = header.inks ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
  if (!jpeg.ReadHeader() || !jpeg.Decode(colours, header.inks ? inks.data() : pixels.data())) {
    return Damaged("the JPEG is damaged", jpeg);
  }
  if (header.inks) InksToColours(inks, jpeg.info().saw_Adobe_marker != 0, pixels);
  return OkStatus();
}

}  // namespace kumo
