#include "data/readers/coco_annotations.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/base/printable.h"
#include "data/readers/annotation_room.h"
#include "data/readers/detection_set.h"

namespace kumo {
namespace {

using Json = nlohmann::json;

constexpr size_t kJsonPieceBytes = 256 << 10;
constexpr int64_t kLongestValue = 16 << 20;  // bytes, with the blanks before it
constexpr int kMostLevels = 64;
// Float32 holds all pixels up to this, with halves.
constexpr double kMostPixels = 1 << 22;
constexpr int64_t kMostSide = 1 << 24;
constexpr size_t kLongestName = 4096;

// The text's bytes, piece by piece. Ends early at an error, or if a value is too long.
class JsonText {
 public:
  explicit JsonText(const ReadPiece& read) : read_(read), piece_(kJsonPieceBytes) { Fill(); }

  bool AtEnd() const { return at_ == size_; }
  char Current() const { return static_cast<char>(piece_[at_]); }
  void Advance() {
    ++at_;
    if (++since_value_ > kLongestValue) {
      status_ = InvalidArgument("a value exceeds " + std::to_string(kLongestValue) + " bytes");
      at_ = size_ = 0;
    } else if (at_ == size_) {
      Fill();
    }
  }
  void BeginValue() { since_value_ = 0; }
  const Status& status() const { return status_; }

 private:
  void Fill() {
    at_ = size_ = 0;
    const Result<size_t> size = read_(piece_);
    status_ = size.status();
    if (size.ok()) size_ = *size;
  }

  const ReadPiece& read_;
  std::vector<uint8_t> piece_;
  size_t at_ = 0, size_ = 0;
  int64_t since_value_ = 0;
  Status status_;
};

// The text for the parser. Null: its end.
struct TextIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  JsonText* text = nullptr;

  char operator*() const { return text->Current(); }
  TextIterator& operator++() {
    text->Advance();
    return *this;
  }
  TextIterator operator++(int) {
    TextIterator before = *this;
    text->Advance();
    return before;
  }
  bool ends() const { return text == nullptr || text->AtEnd(); }
  bool operator==(const TextIterator& other) const { return ends() == other.ends(); }
};

// Takes the values while the parser finds them. A function returns false to end the parsing.
class CocoHandler final : public nlohmann::json_sax<Json> {
 public:
  CocoHandler(JsonText* text, int64_t room) : text_(*text), room_(room) {}

  Status status() const {
    if (!status_.ok()) return status_;
    for (const auto& [found, name] :
         {std::pair(found_images_, "images"), std::pair(found_objects_, "annotations"),
          std::pair(found_categories_, "categories")}) {
      if (!found) {
        return InvalidArgument(std::string("has no array \"") + name +
                               "\", which COCO's instances files have");
      }
    }
    return OkStatus();
  }
  CocoAnnotations& annotations() { return annotations_; }

  bool null() override { return TakeOther(); }
  bool boolean(bool value) override {
    // Some programs write iscrowd so.
    if (depth_ == kInItem && Is("annotations", "iscrowd")) object_.crowd = value;
    return TakeOther();
  }
  bool number_integer(number_integer_t value) override {
    return TakeNumber(value, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    return TakeNumber(fits ? std::optional(static_cast<int64_t>(value)) : std::nullopt,
                      static_cast<double>(value));
  }
  bool number_float(number_float_t value, const std::string& /*text*/) override {
    return TakeNumber(std::nullopt, value);
  }
  bool string(std::string& value) override {
    text_.BeginValue();
    if (depth_ != kInItem) return TakeOther();
    std::string* const to = Is("images", "file_name")  ? &image_.file_name
                            : Is("categories", "name") ? &category_.name
                                                       : nullptr;
    if (to == nullptr) return TakeOther();
    if (value.empty() || value.size() > kLongestName) return Wrong("is no name");
    *to = value;
    has_name_ = true;
    return true;
  }
  bool binary(binary_t& /*value*/) override { return TakeOther(); }

  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == kInRoot && section_ != Section::kOther) {
      return Refuse("\"" + key_ + "\" is no array");
    }
    if (!Enter()) return false;
    if (depth_ == kInItem && section_ != Section::kOther) BeginItem();
    return true;
  }
  bool end_object() override {
    const bool item = depth_ == kInItem && section_ != Section::kOther;
    if (item && !EndItem()) return false;
    return Leave();
  }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == kInRoot && section_ != Section::kOther) {
      bool& found = section_ == Section::kImages    ? found_images_
                    : section_ == Section::kObjects ? found_objects_
                                                    : found_categories_;
      if (found) return Refuse("has the array \"" + key_ + "\" twice");
      found = true;
      items_ = 0;
    } else if (depth_ == kInSection && section_ != Section::kOther) {
      return Refuse(SectionName() + "[" + std::to_string(items_) + "] is no object");
    } else if (depth_ == kInItem && Is("annotations", "bbox")) {
      in_box_ = true;
      sides_ = 0;
    } else if (depth_ == kInBox && in_box_) {
      return Wrong("is no array of 4 numbers");
    }
    return Enter();
  }
  bool end_array() override {
    if (depth_ == kInBox && in_box_) {
      in_box_ = false;
      if (sides_ != 4) return Wrong("is no array of 4 numbers");
      has_box_ = true;
    }
    return Leave();
  }
  bool key(std::string& value) override {
    text_.BeginValue();
    if (depth_ == kInRoot) {
      section_ = value == "images"        ? Section::kImages
                 : value == "annotations" ? Section::kObjects
                 : value == "categories"  ? Section::kCategories
                                          : Section::kOther;
    }
    if (depth_ <= kInItem) key_ = value.size() <= kLongestName ? value : std::string();
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override {
    return Refuse("byte " + std::to_string(position) + ": the JSON is damaged or cut off (" +
                  Printable(error.what()) + ")");
  }

 private:
  enum class Section { kOther, kImages, kObjects, kCategories };
  // Values of depth_.
  static constexpr int kInRoot = 1, kInSection = 2, kInItem = 3, kInBox = 4;

  std::string SectionName() const {
    return section_ == Section::kImages    ? "images"
           : section_ == Section::kObjects ? "annotations"
                                           : "categories";
  }
  bool Is(std::string_view section, std::string_view key) const {
    return section_ != Section::kOther && key_ == key && SectionName() == section;
  }

  bool Refuse(const std::string& why) {
    if (status_.ok()) status_ = InvalidArgument(why);
    return false;
  }
  // Counts the memory of an entry.
  bool TakeRoom(size_t bytes) {
    if (status_.ok()) status_ = room_.Take(static_cast<int64_t>(bytes));
    return status_.ok();
  }
  // Refuses the value of the current key.
  bool Wrong(const std::string& why) {
    return Refuse(SectionName() + "[" + std::to_string(items_) + "]." + Printable(key_, 40) + " " +
                  why);
  }

  bool Enter() {
    text_.BeginValue();
    return ++depth_ <= kMostLevels || Refuse("nests too many levels");
  }
  bool Leave() {
    text_.BeginValue();
    --depth_;
    if (depth_ == kInRoot) section_ = Section::kOther;
    return true;
  }

  // A value that is not used, if it is not in the place of a used one.
  bool TakeOther() {
    text_.BeginValue();
    if (depth_ == 0) return Refuse("is no JSON object");
    if (depth_ == kInRoot && section_ != Section::kOther) {
      return Refuse("\"" + key_ + "\" is no array");
    }
    if (depth_ == kInSection && section_ != Section::kOther) {
      return Refuse(SectionName() + "[" + std::to_string(items_) + "] is no object");
    }
    if (depth_ == kInBox && in_box_) return Wrong("is no array of 4 numbers");
    if (depth_ == kInItem && IsUsed()) return Wrong("has a value of another kind");
    return true;
  }
  bool IsUsed() const {
    return Is("images", "id") || Is("images", "file_name") || Is("annotations", "image_id") ||
           Is("annotations", "category_id") || Is("annotations", "bbox") ||
           Is("categories", "id") || Is("categories", "name");
  }

  bool TakeNumber(std::optional<int64_t> integer, double number) {
    text_.BeginValue();
    if (depth_ == kInBox && in_box_) {
      if (sides_ == 4) return Wrong("is no array of 4 numbers");
      if (!(std::abs(number) <= kMostPixels)) {
        return Wrong("has " + std::to_string(number) + ", which is out of range");
      }
      box_[sides_++] = number;
      return true;
    }
    if (depth_ != kInItem) return TakeOther();
    if (Is("images", "id") || Is("categories", "id")) return TakeId(integer, &id_, &has_id_);
    if (Is("annotations", "image_id")) return TakeId(integer, &object_.image_id, &has_id_);
    if (Is("annotations", "category_id")) {
      return TakeId(integer, &object_.category_id, &has_category_);
    }
    if (Is("annotations", "iscrowd")) object_.crowd = number != 0;
    const bool side = integer && *integer > 0 && *integer <= kMostSide;
    if (Is("images", "height")) image_.height = side ? *integer : 0;
    if (Is("images", "width")) image_.width = side ? *integer : 0;
    return !IsUsed() || TakeOther();
  }
  bool TakeId(std::optional<int64_t> integer, int64_t* id, bool* has) {
    if (!integer) return Wrong("is no integer");
    *id = *integer;
    *has = true;
    return true;
  }

  void BeginItem() {
    key_.clear();
    image_ = {};
    object_ = {};
    category_ = {};
    has_id_ = has_name_ = has_category_ = has_box_ = false;
  }
  bool EndItem() {
    const auto lacks = [&](const char* name) {
      key_ = name;
      return Wrong("is missing");
    };
    switch (section_) {
      case Section::kImages:
        if (!has_id_) return lacks("id");
        if (!has_name_) return lacks("file_name");
        if (image_.height == 0 || image_.width == 0) image_.height = image_.width = 0;
        image_.id = id_;
        if (!IsNewId("image", &image_ids_)) return false;
        if (!TakeRoom(kElementBytes<CocoImage> + image_.file_name.capacity())) return false;
        annotations_.images.push_back(std::move(image_));
        break;
      case Section::kObjects:
        if (!has_id_) return lacks("image_id");
        if (!has_category_) return lacks("category_id");
        if (!has_box_) return lacks("bbox");
        object_.box = {static_cast<float>(box_[0]), static_cast<float>(box_[1]),
                       static_cast<float>(box_[0] + box_[2]),
                       static_cast<float>(box_[1] + box_[3])};
        if (!CountObject() || !TakeRoom(kElementBytes<CocoObject>)) return false;
        annotations_.objects.push_back(object_);
        break;
      case Section::kCategories:
        if (!has_id_) return lacks("id");
        if (!has_name_) return lacks("name");
        category_.id = id_;
        if (!IsNewId("category", &category_ids_)) return false;
        if (!TakeRoom(kElementBytes<CocoCategory> + category_.name.capacity())) return false;
        annotations_.categories.push_back(std::move(category_));
        break;
      case Section::kOther:
        break;
    }
    ++items_;
    return true;
  }

  // Adds the item's id to those of its section.
  bool IsNewId(const std::string& what, std::unordered_set<int64_t>* ids) {
    if (!ids->insert(id_).second) {
      key_ = "id";
      return Wrong("is " + std::to_string(id_) + ", and so is the id of another " + what +
                   "; give each its own id");
    }
    return TakeRoom(kTableEntryBytes);
  }
  // Adds the object to those of its image, which may come later in the file.
  bool CountObject() {
    const auto [count, added] = objects_of_.try_emplace(object_.image_id, 0);
    if (added && !TakeRoom(kTableEntryBytes)) return false;
    if (++count->second <= kMostObjects) return true;
    return Refuse(SectionName() + "[" + std::to_string(items_) + "]: image " +
                  std::to_string(object_.image_id) + " has more than " +
                  std::to_string(kMostObjects) + " objects; remove some, or the image");
  }

  JsonText& text_;
  Status status_;
  AnnotationRoom room_;
  CocoAnnotations annotations_;
  std::unordered_set<int64_t> image_ids_, category_ids_;
  std::unordered_map<int64_t, int64_t> objects_of_;  // their number, by the image's id
  int depth_ = 0;
  Section section_ = Section::kOther;
  std::string key_;
  int64_t items_ = 0;  // of the section so far
  bool in_box_ = false;
  bool found_images_ = false, found_objects_ = false, found_categories_ = false;
  // The current item.
  CocoImage image_;
  CocoObject object_;
  CocoCategory category_;
  int64_t id_ = 0;
  std::array<double, 4> box_{};
  size_t sides_ = 0;
  bool has_id_ = false, has_name_ = false, has_category_ = false, has_box_ = false;
};

}  // namespace

Result<CocoAnnotations> ParseCocoAnnotations(const ReadPiece& read, int64_t room) {
  JsonText text(read);
  CocoHandler handler(&text, room);
  const bool parsed = Json::sax_parse(TextIterator{&text}, TextIterator{}, &handler);
  KUMO_RETURN_IF_ERROR(text.status());
  KUMO_RETURN_IF_ERROR(handler.status());
  if (!parsed) return InvalidArgument("the JSON is damaged");
  return std::move(handler.annotations());
}

}  // namespace kumo
