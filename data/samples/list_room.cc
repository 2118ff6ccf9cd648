#include "data/samples/list_room.h"

#include <algorithm>
#include <utility>

namespace kumo {
namespace {

class RoomierDataset final : public Dataset {
 public:
  RoomierDataset(std::unique_ptr<Dataset> set, Fields fields)
      : set_(std::move(set)), fields_(std::move(fields)) {}

  int64_t size() const override { return set_->size(); }
  const Fields& fields() const override { return fields_; }
  int classes() const override { return set_->classes(); }
  std::span<const std::string> class_names() const override { return set_->class_names(); }
  std::vector<int32_t> SampleClasses() const override { return set_->SampleClasses(); }
  const DataNotes& notes() const override { return set_->notes(); }
  const std::string& name() const override { return set_->name(); }
  Status ReadKey(const SampleKey& key, Sample* sample) const override {
    return set_->ReadKey(key, sample);
  }
  bool in_memory() const override { return set_->in_memory(); }
  void LetGo(Range samples) const override { set_->LetGo(samples); }

 private:
  const std::unique_ptr<Dataset> set_;
  const Fields fields_;
};

}  // namespace

Fields WithRoomOf(Fields fields, const Fields& other) {
  for (Field& field : fields) {
    const int found = FindField(other, field.name);
    if (!field.list || found < 0 || !other[found].list) continue;
    field.extents[0] = std::max(field.extents[0], other[found].extents[0]);
  }
  return fields;
}

std::unique_ptr<Dataset> WithRoomOf(std::unique_ptr<Dataset> set, const Fields& other) {
  Fields fields = WithRoomOf(set->fields(), other);
  if (fields == set->fields()) return set;
  return std::make_unique<RoomierDataset>(std::move(set), std::move(fields));
}

}  // namespace kumo
