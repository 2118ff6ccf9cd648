#include "worker/inference/object_detection.h"

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/settings/option_value.h"
#include "data/reading_bar.h"
#include "models/network.h"
#include "worker/inference/image_minibatches.h"
#include "worker/inference/input_images.h"
#include "worker/inference/object_pictures.h"

namespace kumo {
namespace {

// The number of the shortest text that stands for this float: 0.1, not 0.10000000149011612.
double Shortest(float number) { return ParseNumber<double>(WriteValue(number)).value_or(number); }

// Text that goes to stdout at once, or to a file that appears when it is complete.
class JsonOutput {
 public:
  // path: "" is stdout.
  static Result<std::unique_ptr<JsonOutput>> Open(const std::string& path) {
    std::unique_ptr<JsonOutput> made(new JsonOutput());
    if (!path.empty()) {
      // Before hours of work.
      std::error_code error;
      const auto status = std::filesystem::status(path, error);
      if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        return FailedPrecondition(path + " is no regular file; omit --out to write to stdout");
      }
      KUMO_ASSIGN_OR_RETURN(made->file_, AtomicFile::Create(made->files_, path));
    }
    return made;
  }
  Status Write(const std::string& text) {
    if (file_ != nullptr) return file_->Append(std::as_bytes(std::span(text)));
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
        std::fflush(stdout) == 0) {
      return OkStatus();
    }
    return Unavailable("cannot write to stdout: its reader has ended, or its disk is full");
  }
  Status Close() { return file_ == nullptr ? OkStatus() : file_->Commit(); }

 private:
  JsonOutput() = default;

  PosixFileSystem files_;
  std::unique_ptr<AtomicFile> file_;
};

// Finder: a detector on its device.
class ObjectFinder {
 public:
  static Result<std::unique_ptr<ObjectFinder>> Make(const StoredModel& model,
                                                    const InputImages& images,
                                                    const DetectRequest& request) {
    std::unique_ptr<ObjectFinder> made(new ObjectFinder(request));
    KUMO_ASSIGN_OR_RETURN(const model::Network network, NetworkOf(model));
    KUMO_ASSIGN_OR_RETURN(const Graph graph, PlanNetwork(network));
    if (graph.detector() == nullptr) {
      return InvalidArgument("network " + network.name() + " finds no objects: its last loss is " +
                             graph.loss().kind + ", not multibox; use kumo predict");
    }
    KUMO_RETURN_IF_ERROR(CheckTakesImages(graph, ""));
    const Shape& input = graph.values[0].shape;
    made->target_ = {{input.channels(), input.height(), input.width()},
                     /*scale=*/true,
                     /*stretch=*/true};
    KUMO_ASSIGN_OR_RETURN(ModelData data, DataOf(model));
    KUMO_ASSIGN_OR_RETURN(made->model_, RunningModel::Make(model, network, request.batch,
                                                           NumberType::kUint8, data.pixels));
    made->class_names_ = std::move(data.class_names);
    if (!request.pictures.empty()) {
      KUMO_ASSIGN_OR_RETURN(made->pictures_, ObjectPictures::Open(request.pictures, images));
    }
    return made;
  }

  // Of the minibatches that it takes.
  ImageMinibatches::Form form() const { return {target_, request_.batch, pictures_.has_value()}; }

  Result<std::vector<ImageObjects>> Find(const ImageMinibatch& minibatch) {
    std::vector<ImageObjects> images;
    if (minibatch.images.empty()) return images;
    DetectionRule rule = request_.rule;
    rule.candidates = CandidatesFor(rule.most);
    // A whole minibatch, so that an image's objects do not depend on the number of images.
    KUMO_ASSIGN_OR_RETURN(auto found,
                          model_->Detect(request_.batch, static_cast<int>(minibatch.images.size()),
                                         minibatch.pixels, rule));
    for (size_t i = 0; i < found.size(); ++i) {
      const ImageMinibatch::Image& seen = minibatch.images[i];
      images.push_back({seen.file, seen.height, seen.width, std::move(found[i])});
      const float across = static_cast<float>(seen.width) / static_cast<float>(target_.extents[2]);
      const float down = static_cast<float>(seen.height) / static_cast<float>(target_.extents[1]);
      for (Detection& object : images[i].objects) {
        object.box.left *= across;
        object.box.right *= across;
        object.box.top *= down;
        object.box.bottom *= down;
      }
      std::erase_if(images[i].objects,
                    [](const Detection& object) { return !IsFinite(object.box); });
      if (!pictures_) continue;
      KUMO_ASSIGN_OR_RETURN(images[i].picture, pictures_->Write(seen.file, seen.content,
                                                                images[i].objects, class_names_));
    }
    return images;
  }

  std::span<const std::string> class_names() const { return class_names_; }

 private:
  explicit ObjectFinder(const DetectRequest& request) : request_(request) {}

  const DetectRequest& request_;
  std::unique_ptr<RunningModel> model_;
  ImageTarget target_;
  std::vector<std::string> class_names_;
  std::optional<ObjectPictures> pictures_;
};

// Writes what is found, image by image.
class Report {
 public:
  Report(JsonOutput* output, std::span<const std::string> class_names)
      : output_(*output), class_names_(class_names) {}

  Status Begin(const std::string& checkpoint) {
    return output_.Write("{" + JsonFields().Add("checkpoint", checkpoint).text() + ",\"images\":[");
  }
  Status Add(std::span<const ImageObjects> images) {
    for (const ImageObjects& image : images) {
      objects_ += std::ssize(image.objects);
      const char* const before = images_++ == 0 ? "\n" : ",\n";
      KUMO_RETURN_IF_ERROR(output_.Write(before + JsonOf(image, class_names_)));
    }
    return OkStatus();
  }
  void AddDamaged(const std::string& line) {
    LOG(WARNING) << line;
    damaged_.Add(line);
    ++damaged_images_;
  }
  Status End() {
    KUMO_RETURN_IF_ERROR(output_.Write("\n],\"damaged\":" + damaged_.array() + "}\n"));
    return output_.Close();
  }

  size_t images() const { return images_; }
  size_t damaged_images() const { return damaged_images_; }
  int64_t objects() const { return objects_; }

 private:
  JsonOutput& output_;
  const std::span<const std::string> class_names_;
  size_t images_ = 0;
  size_t damaged_images_ = 0;
  int64_t objects_ = 0;
  JsonArray damaged_;
};

}  // namespace

std::string JsonOf(const ImageObjects& image, std::span<const std::string> class_names) {
  JsonArray objects;
  for (const Detection& object : image.objects) {
    JsonFields one;
    one.Add("class", object.class_index);
    if (object.class_index < std::ssize(class_names)) {
      one.Add("name", class_names[object.class_index]);
    }
    JsonArray box;
    for (const float side :
         {object.box.left, object.box.top, object.box.right, object.box.bottom}) {
      box.Add(Shortest(side));
    }
    objects.Add(one.Add("score", Shortest(object.score)).Add("box", box));
  }
  JsonFields fields;
  fields.Add("file", image.file)
      .Add("width", image.width)
      .Add("height", image.height)
      .Add("objects", objects);
  if (!image.picture.empty()) fields.Add("picture", image.picture);
  return fields.object();
}

Status DetectObjects(const ModelName& name, const DetectRequest& request) {
  KUMO_ASSIGN_OR_RETURN(const StoredModel model, OpenStoredModel(name));
  KUMO_ASSIGN_OR_RETURN(const InputImages images, InputImages::Find(request.inputs, ""));
  KUMO_ASSIGN_OR_RETURN(const auto finder, ObjectFinder::Make(model, images, request));
  KUMO_ASSIGN_OR_RETURN(const auto output, JsonOutput::Open(request.out));
  Report report(output.get(), finder->class_names());
  KUMO_RETURN_IF_ERROR(report.Begin(model.checkpoint));
  for (const std::string& line : images.unusable()) report.AddDamaged(line);
  ReadingBar bar;
  ImageMinibatches minibatches(images, finder->form());
  while (true) {
    KUMO_ASSIGN_OR_RETURN(const auto minibatch, minibatches.Next());
    if (!minibatch) break;
    if (!minibatch->damaged.empty()) bar.Remove();
    for (const std::string& line : minibatch->damaged) report.AddDamaged(line);
    KUMO_ASSIGN_OR_RETURN(const std::vector<ImageObjects> found, finder->Find(*minibatch));
    KUMO_RETURN_IF_ERROR(report.Add(found));
    bar.Show(minibatch->seen, images.size());
  }
  bar.Remove();
  KUMO_RETURN_IF_ERROR(report.End());
  if (report.images() > 0 && report.objects() == 0) {
    LOG(WARNING) << "no object has a score of at least " << WriteValue(request.rule.least_score)
                 << "; a lower --score shows less certain ones";
  }
  return DamageOf(report.damaged_images(), report.images(),
                  model.experiment.data.damaged == DamagedImages::kSkip);
}

}  // namespace kumo
