#include "data/data_summary.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/base/cores.h"
#include "common/base/fnv.h"
#include "common/base/mutex.h"
#include "common/base/thread_pool.h"
#include "data/readers/image_set.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

// Statistics of a channel's pixels. Sums of bytes are integers and exact.
struct Sums {
  double numbers = 0, squares = 0, count = 0;
};

template <typename Number>
void Add(std::span<const std::byte> bytes, std::span<Sums> channels) {
  const size_t plane = bytes.size() / sizeof(Number) / channels.size();
  const auto* numbers = reinterpret_cast<const Number*>(bytes.data());
  for (size_t c = 0; c < channels.size(); ++c) {
    double sum = 0, squares = 0;
    for (const Number number : std::span(numbers + c * plane, plane)) {
      const auto x = static_cast<double>(number);
      sum += x;
      squares += x * x;
    }
    channels[c].numbers += sum;
    channels[c].squares += squares;
    channels[c].count += static_cast<double>(plane);
  }
}

void Finish(std::span<const Sums> of, std::vector<double>* means, std::vector<double>* deviations) {
  for (const Sums& sums : of) {
    const double mean = sums.count > 0 ? sums.numbers / sums.count : 0;
    means->push_back(mean);
    deviations->push_back(
        std::sqrt(std::fmax(0, sums.count > 0 ? sums.squares / sums.count - mean * mean : 0)));
  }
}

void CountLabels(std::span<const std::byte> labels, std::vector<int64_t>* of_class) {
  for (size_t i = 0; i < labels.size(); i += sizeof(int32_t)) {
    int32_t label = 0;
    std::memcpy(&label, labels.data() + i, sizeof label);
    ++(*of_class)[label];
  }
}

// Samples that a thread takes at a time.
constexpr int64_t kSamplesTaken = 16;

uint64_t HashOfImage(const Sample& sample, int image) {
  Fnv1a hash;
  for (const int64_t extent : sample.extents(image)) hash.Add(static_cast<uint64_t>(extent));
  std::span<const std::byte> bytes = sample.field(image);
  for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash.Add(word);
  }
  hash.Add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return hash.value() == 0 ? 1 : hash.value();
}

// The figures of the samples that one thread has read. Sums of bytes are exact, and numbers of
// other types are in memory and so are read by one thread: the sum of tallies does not depend on
// threads.
struct Tally {
  std::vector<int64_t> of_class;
  ObjectFigures objects;
  std::vector<Sums> channels, labels;
  std::map<int64_t, std::string> damaged;  // by sample

  void Add(const Tally& other) {
    for (size_t i = 0; i < of_class.size(); ++i) of_class[i] += other.of_class[i];
    AddSums(other.channels, &channels);
    AddSums(other.labels, &labels);
    objects.Add(other.objects);
    damaged.insert(other.damaged.begin(), other.damaged.end());
  }

 private:
  static void AddSums(const std::vector<Sums>& from, std::vector<Sums>* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      (*to)[i].numbers += from[i].numbers;
      (*to)[i].squares += from[i].squares;
      (*to)[i].count += from[i].count;
    }
  }
};

// The field of the labels: by its name, or the first of classes, or else of numbers; -1: none.
int FindLabels(const Fields& fields) {
  const int label = FindField(fields, kLabelField);
  if (label >= 0 && fields[label].type != NumberType::kUint8) return label;
  const auto first = [&](NumberType type) {
    const auto found = std::ranges::find_if(fields, [&](const Field& field) {
      return field.type == type && field.kind == FieldKind::kNumbers && !field.list &&
             field.name != kImageField;
    });
    return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
  };
  const int of_classes = first(NumberType::kInt32);
  return of_classes >= 0 ? of_classes : first(NumberType::kFloat32);
}

int FindMask(const Fields& fields) {
  const auto found = std::ranges::find(fields, FieldKind::kMask, &Field::kind);
  return found == fields.end() ? -1 : static_cast<int>(found - fields.begin());
}

// The lists of the objects, if a sample has all of them and a picture.
std::optional<ObjectFields> CountedObjects(const Fields& fields) {
  const ObjectFields found = FindObjectFields(fields);
  const bool all = found.boxes >= 0 && found.classes >= 0 && found.difficult >= 0;
  return all && FindPicture(fields) >= 0 ? std::optional(found) : std::nullopt;
}

// One pass over a data set by several threads.
class Pass {
 public:
  Pass(const Dataset& dataset, const SummaryOptions& options)
      : dataset_(dataset),
        options_(options),
        image_(FindPicture(dataset.fields())),
        label_(FindLabels(dataset.fields())),
        mask_(FindMask(dataset.fields())),
        objects_(CountedObjects(dataset.fields())),
        bytes_(image_ >= 0 && dataset.fields()[image_].type == NumberType::kUint8) {
    if (bytes_) hashes_.resize(dataset.size());
  }

  Result<DataSummary> Run() {
    const int threads = options_.threads > 0   ? options_.threads
                        : dataset_.in_memory() ? 1
                                               : ReadingThreadsFor(UsableCores());
    std::vector<Tally> tallies(threads, Empty());
    ThreadPool pool(threads - 1);
    pool.ParallelFor(threads, [&](int64_t thread) { Read(&tallies[thread]); });
    {
      MutexLock lock(mutex_);
      KUMO_RETURN_IF_ERROR(failure_);
    }
    Tally sum = Empty();
    for (const Tally& tally : tallies) sum.Add(tally);
    DataSummary summary;
    summary.of_class = std::move(sum.of_class);
    if (objects_) summary.objects = sum.objects;
    summary.counts_pixels = CountsPixels();
    Finish(sum.channels, &summary.mean, &summary.deviation);
    Finish(sum.labels, &summary.label_mean, &summary.label_deviation);
    for (auto& [index, why] : sum.damaged) summary.damaged.push_back(std::move(why));
    summary.image_hashes = std::move(hashes_);
    return summary;
  }

 private:
  Tally Empty() const {
    Tally tally;
    tally.of_class.resize(dataset_.classes());
    if (image_ >= 0) tally.channels.resize(dataset_.fields()[image_].extents[0]);
    if (Numbers()) tally.labels.resize(dataset_.fields()[label_].numbers());
    return tally;
  }
  bool Numbers() const {
    return label_ >= 0 && dataset_.fields()[label_].type == NumberType::kFloat32;
  }
  // Masks have the only classes.
  bool CountsPixels() const { return mask_ >= 0 && !objects_ && (label_ < 0 || Numbers()); }

  void Read(Tally* tally) {
    Sample sample(dataset_.fields());
    for (;;) {
      const int64_t begin = next_.fetch_add(kSamplesTaken);
      if (begin >= dataset_.size()) return;
      const int64_t end = std::min(begin + kSamplesTaken, dataset_.size());
      for (int64_t i = begin; i < end; ++i) {
        sample.Reset(dataset_.fields());
        const Status read = dataset_.Read(i, &sample);
        if (read.ok()) {
          Count(sample, i, tally);
        } else if (IsDamage(read)) {
          tally->damaged.emplace(i, read.message());
        } else {
          MutexLock lock(mutex_);
          if (failure_.ok()) failure_ = read;
          next_ = dataset_.size();
          return;
        }
      }
      dataset_.LetGo({begin, end});
      MutexLock lock(mutex_);
      read_ += end - begin;
      if (options_.progress) options_.progress(read_);
    }
  }

  void Count(const Sample& sample, int64_t index, Tally* tally) {
    if (objects_) {
      CountLabels(sample.field(objects_->classes), &tally->of_class);
      tally->objects.Add(sample.extents(image_), sample.field(objects_->boxes),
                         sample.field(objects_->difficult));
    } else if (Numbers()) {
      Add<float>(sample.field(label_), tally->labels);
    } else if (label_ >= 0) {
      CountLabels(sample.field(label_), &tally->of_class);
    }
    if (CountsPixels()) {
      for (const uint8_t number : sample.pixels(mask_)) {
        if (number != kIgnoredClass) ++tally->of_class[number];
      }
    }
    if (image_ < 0) return;
    if (bytes_) {
      Add<uint8_t>(sample.field(image_), tally->channels);
      hashes_[index] = HashOfImage(sample, image_);
    } else {
      Add<float>(sample.field(image_), tally->channels);
    }
  }

  const Dataset& dataset_;
  const SummaryOptions& options_;
  const int image_, label_, mask_;
  const std::optional<ObjectFields> objects_;
  const bool bytes_;
  std::vector<uint64_t> hashes_;  // each written by one thread
  std::atomic<int64_t> next_ = 0;
  Mutex mutex_;
  int64_t read_ KUMO_GUARDED_BY(mutex_) = 0;
  Status failure_ KUMO_GUARDED_BY(mutex_);
};

}  // namespace

void ObjectFigures::Add(std::span<const int64_t> image, std::span<const std::byte> boxes,
                        std::span<const std::byte> difficult_flags) {
  constexpr double kSmall = 32 * 32, kMedium = 96 * 96;
  std::array<float, 4> box{};
  const auto count = static_cast<int64_t>(boxes.size() / sizeof box);
  objects += count;
  most = std::max(most, count);
  if (count == 0) ++images_without;
  for (; boxes.size() >= sizeof box; boxes = boxes.subspan(sizeof box)) {
    std::memcpy(box.data(), boxes.data(), sizeof box);
    const double area = (double{box[2]} - box[0]) * (double{box[3]} - box[1]);
    ++by_area[area < kSmall ? 0 : area < kMedium ? 1 : 2];
  }
  difficult += std::ranges::count(difficult_flags, std::byte{1});
  least_height = std::min(least_height, image[1]);
  most_height = std::max(most_height, image[1]);
  least_width = std::min(least_width, image[2]);
  most_width = std::max(most_width, image[2]);
}

void ObjectFigures::Add(const ObjectFigures& other) {
  objects += other.objects;
  difficult += other.difficult;
  images_without += other.images_without;
  most = std::max(most, other.most);
  for (size_t i = 0; i < by_area.size(); ++i) by_area[i] += other.by_area[i];
  least_height = std::min(least_height, other.least_height);
  most_height = std::max(most_height, other.most_height);
  least_width = std::min(least_width, other.least_width);
  most_width = std::max(most_width, other.most_width);
}

Result<DataSummary> Summarise(const Dataset& dataset, const SummaryOptions& options) {
  const Fields& fields = dataset.fields();
  if (FindLabels(fields) < 0 && FindMask(fields) < 0 && FindPicture(fields) < 0) {
    return FailedPrecondition(dataset.name() + ": its samples have no labels");
  }
  return Pass(dataset, options).Run();
}

std::vector<double> BalancedWeights(std::span<const int64_t> of_class) {
  double samples = 0, classes = 0;
  for (const int64_t count : of_class) {
    samples += static_cast<double>(count);
    classes += count > 0 ? 1 : 0;
  }
  std::vector<double> weights;
  for (const int64_t count : of_class) {
    weights.push_back(count > 0 ? samples / (classes * static_cast<double>(count)) : 1);
  }
  return weights;
}

std::string SharedImages::Note(int64_t validation_samples) const {
  if (images == 0) return "";
  return std::to_string(images) + " of " + std::to_string(validation_samples) +
         " validation images are also in the training set (the first: validation sample " +
         std::to_string(validation) + " is training sample " + std::to_string(train) +
         "), so that the validation figures are too good; remove them from one of the sets";
}

SharedImages ImagesInBoth(const DataSummary& train, const DataSummary& validation) {
  std::unordered_map<uint64_t, int64_t> trained;  // the first sample of each hash
  for (int64_t i = 0; i < std::ssize(train.image_hashes); ++i) {
    if (train.image_hashes[i] != 0) trained.emplace(train.image_hashes[i], i);
  }
  SharedImages shared;
  for (int64_t i = 0; i < std::ssize(validation.image_hashes); ++i) {
    const auto found = trained.find(validation.image_hashes[i]);
    if (found == trained.end()) continue;
    if (shared.images++ == 0) {
      shared.validation = i;
      shared.train = found->second;
    }
  }
  return shared;
}

}  // namespace kumo
