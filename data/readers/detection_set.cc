#include "data/readers/detection_set.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include <glog/logging.h>

#include "common/base/text.h"
#include "common/detection/boxes.h"
#include "common/detection/detections.h"
#include "data/readers/class_list.h"
#include "data/readers/image_loader.h"
#include "data/readers/image_set.h"
#include "data/readers/image_store.h"

namespace kumo {
namespace {

constexpr size_t kNamedCases = 3;  // of a rule, in its note
// Boxes that are clipped by less are not counted: programs round differently, or count pixels from
// 0.
constexpr float kSlackPixels = 1;

// Positions of the fields.
constexpr int kBoxes = 1;
constexpr int kClasses = 2;
constexpr int kDifficult = 3;

// left, top, right, bottom
using BoxSides = std::array<float, 4>;

struct ImageExtent {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageExtent&) const = default;
};

Fields FieldsOf(std::vector<int64_t> image, int64_t capacity) {
  return {{kImageField, NumberType::kUint8, std::move(image), FieldKind::kPicture},
          {kBoxesField, NumberType::kFloat32, {capacity, 4}, FieldKind::kBoxes, true},
          {kClassesField, NumberType::kInt32, {capacity}, FieldKind::kNumbers, true},
          {kDifficultField, NumberType::kUint8, {capacity}, FieldKind::kNumbers, true}};
}

enum class Oddity {
  kOtherClass,
  kReversed,
  kWithoutArea,
  kOutside,
  kClipped,
  kWithoutObjects,
  kBeyondEvaluation,
  kManyObjects,
  kOtherSize,
  kStoredSize,
};
static_assert(kMostMatchedObjects == 4096 && DetectionRule().most == 200, "as the texts below say");
// By Oddity: one case, several, and what is done.
struct OddityText {
  const char* one;
  const char* more;
  const char* rule;
};
constexpr OddityText kOddities[] = {
    {"object has a class", "objects have classes", "that data.class_list does not have: dropped"},
    {"box has", "boxes have", "reversed corners: swapped"},
    {"box has", "boxes have", "no area: dropped"},
    {"box lies", "boxes lie", "outside the image: dropped"},
    {"box lies", "boxes lie", "partly outside the image: clipped"},
    {"image has", "images have", "no objects: kept"},
    {"image has", "images have",
     "more than 200 objects: kept, but evaluation counts the best 200 detections of an image only; "
     "cut the images into tiles"},
    {"image has", "images have",
     "more than 4096 objects: kept, but the loss multibox matches the first 4096 only, while mean "
     "average precision counts all; cut the images into tiles"},
    {"image has", "images have", "another size than annotated: the image's size counts"},
    {"image was", "images were",
     "annotated in the size before EXIF's orientation turns it: boxes count in the upright image; "
     "check them, or store the pixels upright (mogrify -auto-orient)"},
};

// The cases of each rule.
class Oddities {
 public:
  // where: names the case.
  template <typename Where>
  void Add(Oddity oddity, const Where& where) {
    Cases& cases = cases_[static_cast<size_t>(oddity)];
    if (cases.count++ < static_cast<int64_t>(kNamedCases)) cases.named.push_back(where());
  }

  std::vector<std::string> Remarks() const {
    std::vector<std::string> remarks;
    for (size_t i = 0; i < std::size(kOddities); ++i) {
      const Cases& cases = cases_[i];
      if (cases.count == 0) continue;
      const OddityText& text = kOddities[i];
      const bool all = cases.count <= static_cast<int64_t>(kNamedCases);
      remarks.push_back(Counted(cases.count, text.one, text.more) + " " + text.rule + " (" +
                        Join(cases.named) + (all ? "" : ", ...") + ")");
    }
    return remarks;
  }

 private:
  struct Cases {
    int64_t count = 0;
    std::vector<std::string> named;
  };
  std::array<Cases, std::size(kOddities)> cases_;
};

bool HasNoArea(const BoxSides& box) { return !(box[0] < box[2]) || !(box[1] < box[3]); }

// Clips a box to the image and returns the most that was cut off of a side. A box outside the image
// has no area then.
float Clip(const ImageExtent& size, BoxSides* box) {
  float cut = 0;
  for (size_t i = 0; i < box->size(); ++i) {
    const auto end = static_cast<float>(i % 2 == 0 ? size.width : size.height);
    const float inside = std::clamp((*box)[i], 0.0f, end);
    cut = std::max(cut, std::abs(inside - (*box)[i]));
    (*box)[i] = inside;
  }
  return cut;
}

// The objects of all images, image by image.
struct Objects {
  std::vector<BoxSides> boxes;
  std::vector<int32_t> classes;
  std::vector<uint8_t> difficult;

  int64_t bytes() const {
    return std::ssize(boxes) * static_cast<int64_t>(sizeof(BoxSides) + sizeof(int32_t) + 1);
  }
};

// The classes of a set.
struct Classes {
  std::vector<std::string> names;
  std::vector<int32_t> number_of;  // by name of the set; -1: dropped
};

Result<Classes> ClassesOfSet(const DetectionSet& set, const ReaderRequest& request) {
  Classes classes;
  const bool listed = !request.class_list.empty();
  if (!listed && (request.train_names.empty() || request.train_names == set.names)) {
    classes.names = set.names;
    for (size_t i = 0; i < set.names.size(); ++i) {
      classes.number_of.push_back(static_cast<int32_t>(i));
    }
  } else if (listed) {
    KUMO_ASSIGN_OR_RETURN(classes.names, ReadClassList(request.class_list));
    const auto numbers = NumbersOfClasses(classes.names);
    for (const std::string& name : set.names) {
      const auto found = numbers.find(name);
      classes.number_of.push_back(found == numbers.end() ? -1 : found->second);
    }
  } else {
    classes.names = request.train_names;
    const auto numbers = NumbersOfClasses(classes.names);
    if (numbers.size() < classes.names.size()) {
      return InvalidArgument(set.name +
                             ": has other classes than the training set, in which two have the "
                             "same name; give one of them another name");
    }
    for (const std::string& name : set.names) {
      const auto found = numbers.find(name);
      if (found == numbers.end()) return NotTrained(set.name, name, classes.names);
      classes.number_of.push_back(found->second);
    }
  }
  if (std::ssize(classes.names) == request.classes || request.any_classes) return classes;
  if (listed) {
    KUMO_RETURN_IF_ERROR(CheckListed(request.class_list, classes.names, request.classes));
  }
  return InvalidArgument(
      set.name + ": its objects have " + ClassesCounted(classes.names) +
      ", but data.classes = " + std::to_string(request.classes) +
      "; set data.classes = " + std::to_string(classes.names.size()) +
      ", or, if this set lacks some classes, name all of them with data.class_list");
}

// A set whose annotations have been judged.
struct Judged {
  std::vector<std::unique_ptr<const ImageStore>> stores;
  ImageTarget target;
  std::vector<ImageExtent> sizes;  // by image: upright, as in its header; 0 x 0: unknown
  std::vector<int64_t> begins;     // of the images' objects, and their number
  Objects objects;
  std::vector<std::string> class_names;
  int64_t capacity = 1;
  DataNotes notes;
  std::map<int64_t, Status> damaged;

  int64_t size() const { return std::ssize(sizes); }
  int64_t bytes() const {
    int64_t bytes = objects.bytes() + size() * static_cast<int64_t>(sizeof(ImageExtent)) +
                    std::ssize(begins) * static_cast<int64_t>(sizeof(int64_t));
    for (const auto& store : stores) bytes += store->bytes();
    return bytes;
  }
};

class Judge {
 public:
  Judge(DetectionSet set, const ReaderRequest& request) : set_(std::move(set)), request_(request) {}

  Result<Judged> Run() {
    KUMO_RETURN_IF_ERROR(FindDamaged());
    KUMO_ASSIGN_OR_RETURN(Classes classes, ClassesOfSet(set_, request_));
    number_of_ = std::move(classes.number_of);
    judged_.class_names = std::move(classes.names);
    judged_.begins = {0};
    int64_t image = 0;
    for (AnnotatedImages& part : set_.parts) {
      KUMO_ASSIGN_OR_RETURN(std::unique_ptr<const ImageStore> store, StoreOf(part));
      for (int64_t i = 0; i < std::ssize(part.images); ++i) {
        KUMO_RETURN_IF_ERROR(TakeImage(*store, i, image++, &part.images[i]));
      }
      part.images.clear();
      judged_.stores.push_back(std::move(store));
    }
    KUMO_ASSIGN_OR_RETURN(judged_.target, TargetOf());
    judged_.notes = std::move(set_.notes);
    for (std::string& remark : oddities_.Remarks()) {
      judged_.notes.remarks.push_back(std::move(remark));
    }
    return std::move(judged_);
  }

 private:
  // Collects the images' problems, or refuses them.
  Status FindDamaged() {
    int64_t images = 0;
    for (AnnotatedImages& part : set_.parts) {
      for (AnnotatedImage& image : part.images) {
        if (!image.problem.ok()) judged_.damaged.emplace(images, std::move(image.problem));
        ++images;
      }
    }
    if (images == 0) return InvalidArgument(set_.name + ": lists no images");
    return CheckDamaged(judged_.damaged, images, request_);
  }

  Result<std::unique_ptr<const ImageStore>> StoreOf(const AnnotatedImages& part) const {
    std::vector<std::string> names;
    for (const AnnotatedImage& image : part.images) names.push_back(image.file);
    KUMO_ASSIGN_OR_RETURN(auto store,
                          ImageStore::Open(part.container, std::move(names),
                                           {.room = request_.room, .may_lack_files = true}));
    return std::unique_ptr<const ImageStore>(std::move(store));
  }

  // index: in the store; number: in the set.
  Status TakeImage(const ImageStore& store, int64_t index, int64_t number, AnnotatedImage* image) {
    const auto where = [&] { return store.Name(index); };
    // Unknown for a damaged image, which is found when it is read.
    ImageExtent size;
    if (!judged_.damaged.contains(number)) {
      const Result<ImageHeader> header = store.ReadHeader(index, &buffer_);
      if (header.ok()) {
        size = {header->height, header->width};
        const ImageExtent stored = {header->stored_height(), header->stored_width()};
        const ImageExtent annotated = {image->height, image->width};
        if (annotated.width > 0 && annotated != size) {
          oddities_.Add(annotated == stored ? Oddity::kStoredSize : Oddity::kOtherSize, where);
        }
      }
    }
    const int64_t before = std::ssize(judged_.objects.boxes);
    for (size_t i = 0; i < image->objects.size(); ++i) {
      const auto where_object = [&] { return where() + ", object " + std::to_string(i + 1); };
      TakeObject(image->objects[i], size, where_object);
    }
    const int64_t objects = std::ssize(judged_.objects.boxes) - before;
    if (objects > kMostObjects) {
      return InvalidArgument(where() + ": has " + std::to_string(objects) +
                             " objects, but an image may have " + std::to_string(kMostObjects));
    }
    if (objects == 0 && !judged_.damaged.contains(number)) {
      oddities_.Add(Oddity::kWithoutObjects, where);
    }
    if (objects > DetectionRule().most) oddities_.Add(Oddity::kBeyondEvaluation, where);
    if (objects > kMostMatchedObjects) oddities_.Add(Oddity::kManyObjects, where);
    judged_.capacity = std::max(judged_.capacity, objects);
    judged_.sizes.push_back(size);
    judged_.begins.push_back(before + objects);
    return OkStatus();
  }

  template <typename Where>
  void TakeObject(const AnnotatedObject& object, const ImageExtent& size, const Where& where) {
    if (number_of_[object.name] < 0) return oddities_.Add(Oddity::kOtherClass, where);
    BoxSides box = {object.left, object.top, object.right, object.bottom};
    if (box[0] > box[2] || box[1] > box[3]) {
      if (box[0] > box[2]) std::swap(box[0], box[2]);
      if (box[1] > box[3]) std::swap(box[1], box[3]);
      oddities_.Add(Oddity::kReversed, where);
    }
    if (HasNoArea(box)) return oddities_.Add(Oddity::kWithoutArea, where);
    if (set_.numbers_pixels) {
      box[0] -= 1;
      box[1] -= 1;
    }
    if (size.width > 0) {
      const float cut = Clip(size, &box);
      if (HasNoArea(box)) return oddities_.Add(Oddity::kOutside, where);
      if (cut > kSlackPixels) oddities_.Add(Oddity::kClipped, where);
    }
    judged_.objects.boxes.push_back(box);
    judged_.objects.classes.push_back(number_of_[object.name]);
    judged_.objects.difficult.push_back(object.difficult ? 1 : 0);
  }

  // The format of the samples' images; without settings, that of the first valid image.
  Result<ImageTarget> TargetOf() {
    if (!request_.image_size.empty()) {
      if (request_.originals) return ImageTarget{{request_.image_size[0], 0, 0}};
      return ImageTarget{.extents = request_.image_size, .scale = true, .stretch = true};
    }
    std::vector<const ImageStore*> stores;
    for (const auto& store : judged_.stores) stores.push_back(store.get());
    return TargetOfFirst(set_.name, stores, judged_.damaged, request_);
  }

  DetectionSet set_;
  const ReaderRequest& request_;
  std::vector<int32_t> number_of_;  // by name
  Judged judged_;
  Oddities oddities_;
  std::vector<uint8_t> buffer_;
};

class DetectionDataset final : public Dataset {
 public:
  DetectionDataset(std::string name, Judged set, const ReaderRequest& request)
      : name_(std::move(name)),
        sizes_(std::move(set.sizes)),
        begins_(std::move(set.begins)),
        objects_(std::move(set.objects)),
        class_names_(std::move(set.class_names)),
        notes_(std::move(set.notes)),
        fields_(FieldsOf(set.target.extents, set.capacity)),
        loader_(name_, std::move(set.stores), std::move(set.target), request,
                std::move(set.damaged)) {
    CHECK_EQ(loader_.size(), size()) << name_;
  }

  int64_t size() const override { return std::ssize(sizes_); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return static_cast<int>(class_names_.size()); }
  std::span<const std::string> class_names() const override { return class_names_; }
  const DataNotes& notes() const override { return notes_; }
  const std::string& name() const override { return name_; }

  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    KUMO_ASSIGN_OR_RETURN(const ImageLoader::Loaded loaded, loader_.Load(key.sample, sample));
    const int64_t begin = begins_[loaded.index];
    const int64_t count = begins_[loaded.index + 1] - begin;
    const ImageExtent size = {loaded.height, loaded.width};
    const std::span<const int64_t> extents = sample->extents(kImage);
    if (size == sizes_[loaded.index] && size == ImageExtent{extents[1], extents[2]}) {
      Lend(kBoxes, std::span(objects_.boxes).subspan(begin, count), sample);
      Lend(kClasses, std::span(objects_.classes).subspan(begin, count), sample);
      Lend(kDifficult, std::span(objects_.difficult).subspan(begin, count), sample);
      SetCount(count, sample);
    } else {
      MakeObjects(begin, count, size, sample);
    }
    return OkStatus();
  }

 private:
  template <typename T>
  static void Lend(int field, std::span<const T> entries, Sample* sample) {
    sample->Borrow(field, std::as_bytes(entries));
  }

  static void SetCount(int64_t count, Sample* sample) {
    sample->SetExtents(kBoxes, std::array<int64_t, 2>{count, 4});
    sample->SetExtents(kClasses, std::array<int64_t, 1>{count});
    sample->SetExtents(kDifficult, std::array<int64_t, 1>{count});
  }

  // Boxes in the sample's image, which the image in its file was scaled to. If the image's header
  // could not be read at the opening, boxes are clipped here, or dropped if they are outside.
  void MakeObjects(int64_t begin, int64_t count, const ImageExtent& size, Sample* sample) const {
    const std::span<const int64_t> extents = sample->extents(kImage);
    const double down = static_cast<double>(extents[1]) / static_cast<double>(size.height);
    const double across = static_cast<double>(extents[2]) / static_cast<double>(size.width);
    const size_t room = static_cast<size_t>(count);
    const auto boxes = sample->Make(kBoxes, room * sizeof(BoxSides));
    const auto classes = sample->Make(kClasses, room * sizeof(int32_t));
    const auto difficult = sample->Make(kDifficult, room);
    int64_t kept = 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      BoxSides box = objects_.boxes[i];
      Clip(size, &box);
      if (HasNoArea(box)) continue;
      for (size_t side = 0; side < box.size(); ++side) {
        box[side] = static_cast<float>(box[side] * (side % 2 == 0 ? across : down));
      }
      Put(box, kept, boxes);
      Put(objects_.classes[i], kept, classes);
      Put(objects_.difficult[i], kept, difficult);
      ++kept;
    }
    // The rest of the memory is none of the sample's.
    sample->Borrow(kBoxes, boxes.first(static_cast<size_t>(kept) * sizeof(BoxSides)));
    sample->Borrow(kClasses, classes.first(static_cast<size_t>(kept) * sizeof(int32_t)));
    sample->Borrow(kDifficult, difficult.first(static_cast<size_t>(kept)));
    SetCount(kept, sample);
  }

  template <typename T>
  static void Put(const T& value, int64_t place, std::span<std::byte> to) {
    std::ranges::copy(std::as_bytes(std::span(&value, 1)),
                      to.data() + static_cast<size_t>(place) * sizeof value);
  }

  const std::string name_;
  const std::vector<ImageExtent> sizes_;
  const std::vector<int64_t> begins_;
  const Objects objects_;
  const std::vector<std::string> class_names_;
  const DataNotes notes_;
  const Fields fields_;
  const ImageLoader loader_;
};

}  // namespace

Result<std::unique_ptr<Dataset>> OpenDetectionSet(DetectionSet set, const ReaderRequest& request) {
  const std::string name = set.name;
  KUMO_ASSIGN_OR_RETURN(Judged judged, Judge(std::move(set), request).Run());
  return std::unique_ptr<Dataset>(
      std::make_unique<DetectionDataset>(name, std::move(judged), request));
}

Result<DatasetExtents> MeasureDetectionSet(DetectionSet set, const ReaderRequest& request) {
  KUMO_ASSIGN_OR_RETURN(Judged judged, Judge(std::move(set), request).Run());
  DatasetExtents extents{judged.size(), FieldsOf(judged.target.extents, judged.capacity),
                         judged.bytes(), std::move(judged.notes)};
  extents.class_names = std::move(judged.class_names);
  return extents;
}

}  // namespace kumo
