#include "data/program/contact_sheet.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "data/pictures/drawing.h"
#include "data/samples/pixel_kernels.h"
#include "data/samples/resample.h"
#include "data/transforms/geometry.h"

namespace kumo {
namespace {

constexpr int64_t kGap = 2;          // pixels between images
constexpr int64_t kSmallSide = 64;   // smaller images are enlarged to about this
constexpr int64_t kLargeSide = 256;  // larger images are reduced to this
// Boxes and their labels need more pixels.
constexpr int64_t kLargeSideWithObjects = 320;

// Layout of the sheet.
struct Grid {
  std::vector<int64_t> extents;  // of an image, after reduction
  int64_t enlarged = 1;          // enlargement factor
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t row_height() const { return extents[1] * enlarged + kGap; }
  int64_t column_width() const { return extents[2] * enlarged + kGap; }
};

// Fields of a sample that are drawn; -1: none.
struct DrawnFields {
  int image = -1;
  int label = -1;  // gives the row
  int mask = -1;
  ObjectFields objects;
};

DrawnFields FieldsToDraw(const Fields& fields, const Fields& read, int classes) {
  DrawnFields drawn;
  drawn.image = FindPicture(fields);
  // As it is read; mixup makes shares of it.
  const int label = FindField(read, kLabelField);
  const bool of_class = label >= 0 && read[label].type == NumberType::kInt32 &&
                        read[label].numbers() == 1 && !read[label].list && classes > 0;
  drawn.label = of_class ? label : -1;
  const MovedFields moved(fields);
  drawn.mask = moved.masks.empty() ? -1 : moved.masks[0];
  drawn.objects = FindObjectFields(fields);
  return drawn;
}

Grid GridFor(const Dataset& dataset, std::vector<int64_t> extents, const DrawnFields& drawn,
             int columns) {
  Grid grid;
  const int64_t side = std::max(extents[1], extents[2]);
  const int64_t large = drawn.objects.boxes >= 0 ? kLargeSideWithObjects : kLargeSide;
  for (int64_t* extent : {&extents[1], &extents[2]}) {
    if (side > large) *extent = std::max<int64_t>(1, *extent * large / side);
  }
  grid.extents = std::move(extents);
  grid.enlarged = std::max<int64_t>(1, kSmallSide / side);
  const int64_t filled = (dataset.size() + columns - 1) / columns;
  grid.rows = drawn.label >= 0 ? std::min(dataset.classes(), kMostSheetRows)
                               : std::min<int64_t>(filled, columns);
  grid.columns = columns;
  return grid;
}

// Place of an image on the sheet.
Rectangle PlaceOf(const Grid& grid, int64_t row, int64_t column) {
  return {kGap + row * grid.row_height(), kGap + column * grid.column_width(),
          grid.extents[1] * grid.enlarged, grid.extents[2] * grid.enlarged};
}

void Paste(const Grid& grid, std::span<const uint8_t> image, const Rectangle& place,
           ContactSheet* sheet) {
  const int64_t height = grid.extents[1], width = grid.extents[2];
  for (int64_t y = 0; y < place.height; ++y) {
    for (int64_t x = 0; x < place.width; ++x) {
      const int64_t to = ((place.top + y) * sheet->width + place.left + x) * kColours;
      const int64_t from = y / grid.enlarged * width + x / grid.enlarged;
      for (int64_t c = 0; c < kColours; ++c) {
        const int64_t channel = std::min(c, grid.extents[0] - 1);
        sheet->pixels[to + c] = image[channel * height * width + from];
      }
    }
  }
}

std::string NameOfClass(const Dataset& dataset, int32_t number) {
  const auto names = dataset.class_names();
  return number >= 0 && number < std::ssize(names) ? names[number] : std::to_string(number);
}

// A frame for each object, a thin one if it is difficult, and the names of their classes.
void PasteObjects(const Dataset& dataset, const DrawnFields& drawn, const Sample& sample,
                  const Rectangle& place, ContactSheet* sheet) {
  std::vector<Box> boxes(sample.extents(drawn.objects.boxes)[0]);
  if (boxes.empty()) return;
  std::memcpy(boxes.data(), sample.field(drawn.objects.boxes).data(), boxes.size() * sizeof(Box));
  const std::span<const int64_t> extents = sample.extents(drawn.image);
  GeometricMap map;
  map.from = {0, 0, extents[1], extents[2]};
  map.size = {place.height, place.width};
  const Canvas canvas = {sheet->height, sheet->width, sheet->pixels};
  for (size_t i = 0; i < boxes.size(); ++i) {
    int32_t number = 0;
    if (drawn.objects.classes >= 0) {
      std::memcpy(&number, sample.field(drawn.objects.classes).data() + i * sizeof number,
                  sizeof number);
    }
    const bool difficult =
        drawn.objects.difficult >= 0 && sample.field(drawn.objects.difficult)[i] != std::byte{0};
    Box box = MovedBox(map, boxes[i]);
    box.left += static_cast<float>(place.left);
    box.right += static_cast<float>(place.left);
    box.top += static_cast<float>(place.top);
    box.bottom += static_cast<float>(place.top);
    const Colour colour = ColourOfClass(std::max(0, number));
    DrawBox(canvas, box, colour, difficult ? 1 : 2);
    if (drawn.objects.classes >= 0) {
      DrawLabel(canvas, static_cast<int64_t>(box.top), static_cast<int64_t>(box.left),
                NameOfClass(dataset, number), colour);
    }
  }
}

}  // namespace

Result<ContactSheet> DrawContactSheet(const Datasets& sets, uint64_t seed, int columns) {
  const Dataset& dataset = *sets.train;
  const Fields fields = sets.fields();
  const DrawnFields drawn = FieldsToDraw(fields, dataset.fields(), dataset.classes());
  if (drawn.image < 0 || fields[drawn.image].kind != FieldKind::kPicture) {
    return FailedPrecondition(dataset.name() + ": a contact sheet needs images in bytes");
  }
  const std::vector<int64_t>& extents = fields[drawn.image].extents;
  const Grid grid = GridFor(dataset, extents, drawn, columns);
  ContactSheet sheet;
  sheet.height = kGap + grid.rows * grid.row_height();
  sheet.width = kGap + grid.columns * grid.column_width();
  sheet.pixels.assign(sheet.height * sheet.width * kColours, 255);
  std::vector<int64_t> drawn_in(grid.rows);  // samples by row
  int64_t missing = grid.rows * grid.columns;
  Sample sample(dataset.fields());
  Resampler resampler;
  std::vector<uint8_t> small(grid.extents[0] * grid.extents[1] * grid.extents[2]);
  for (int64_t i = 0; i < dataset.size() && missing > 0; ++i) {
    int64_t row = i / columns;
    if (drawn.label >= 0) {
      int32_t number = 0;
      sample.Reset(dataset.fields());
      KUMO_RETURN_IF_ERROR(dataset.Read(i, &sample));
      std::memcpy(&number, sample.field(drawn.label).data(), sizeof number);
      row = number;
    }
    if (row >= grid.rows || drawn_in[row] == columns) continue;
    KUMO_RETURN_IF_ERROR(ReadTransformed(dataset, sets.transforms, {seed, 0, i}, &sample));
    const Rectangle place = PlaceOf(grid, row, drawn_in[row]++);
    resampler.Resample(sample.pixels(drawn.image), extents[0], extents[1], extents[2],
                       {0, 0, extents[1], extents[2]}, grid.extents[1], grid.extents[2], small);
    Paste(grid, small, place, &sheet);
    if (drawn.mask >= 0) {
      GeometricMap map;
      map.from = {0, 0, extents[1], extents[2]};
      map.size = {place.height, place.width};
      std::vector<uint8_t> mask(place.height * place.width);
      MoveMask(map, {extents[1], extents[2]}, sample.pixels(drawn.mask), mask);
      DrawMask({sheet.height, sheet.width, sheet.pixels}, place, mask);
    }
    if (drawn.objects.boxes >= 0) PasteObjects(dataset, drawn, sample, place, &sheet);
    --missing;
  }
  return sheet;
}

}  // namespace kumo
