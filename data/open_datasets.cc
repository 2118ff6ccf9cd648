#include "data/open_datasets.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "common/base/memory_budget.h"
#include "common/settings/option_value.h"
#include "data/class_sampling.h"
#include "data/mean_image.h"
#include "data/readers/image_files.h"
#include "data/readers/image_set_names.h"
#include "data/readers/registry.h"
#include "data/samples/list_room.h"
#include "data/samples/validation_split.h"
#include "data/transforms/transform.h"

namespace kumo {
namespace {

constexpr int64_t kPartsOfMemory = 4;

constexpr char kHowToGetMnist[] =
    "; get MNIST with data/fetch.sh mnist DIR, or draw a similar set without a network with "
    "`kumo-data digits --out DIR`; then set data.directory=DIR or KUMO_DATA=DIR";

constexpr char kHowToGetShakespeare[] =
    "; get it with data/fetch.sh shakespeare DIR; then set data.directory=DIR or KUMO_DATA=DIR";
constexpr char kHowToGetCifar[] =
    "; get CIFAR-10 as published with data/fetch.sh cifar10 DIR, which prints the settings "
    "to read it";

constexpr char kHowToGetVoc[] =
    "; get Pascal VOC with data/fetch.sh voc DIR, which prints the settings to read it; then set "
    "data.directory=DIR or KUMO_DATA=DIR";

constexpr char kHowToGetBccd[] =
    "; it is the folder BCCD of https://github.com/Shenggan/BCCD_Dataset, packed with tar -czf "
    "DIR/voc/bccd.tar.gz BCCD; then set data.directory=DIR or KUMO_DATA=DIR";

constexpr char kHowToGetScenes[] =
    "; draw these pictures with `kumo-data scenes --out DIR`; then set data.directory=DIR or "
    "KUMO_DATA=DIR";

// A setting with a file name.
struct FileSetting {
  std::string key;
  std::string value;
  // Advice how to get the data of the installed experiments.
  std::string Advice() const {
    if (value.starts_with("mnist/")) return kHowToGetMnist;
    if (value.starts_with("text/tinyshakespeare")) return kHowToGetShakespeare;
    if (value.starts_with("voc/VOC")) return kHowToGetVoc;
    if (value.starts_with("voc/bccd")) return kHowToGetBccd;
    if (value.starts_with("scenes/")) return kHowToGetScenes;
    return value.starts_with("cifar10/") ? kHowToGetCifar : "";
  }
};

// The files of one set.
struct SetFiles {
  FileSetting images;
  FileSetting labels;
};

// The path of a file; with `archives` it may lie inside one. Errors name the setting and the path.
Result<std::string> Find(const std::string& directory, const FileSetting& file,
                         bool archives = false) {
  const bool absolute = file.value.starts_with('/');
  const std::string named = file.key + " = " + file.value;
  if (!absolute && directory.empty()) {
    const std::string advice = file.Advice();
    return FailedPrecondition(
        named + ": the name is relative, but data.directory is not set" +
        (advice.empty() ? "; set its folder with --set data.directory=DIR or KUMO_DATA=DIR"
                        : advice));
  }
  const std::string path = absolute ? file.value : JoinPath(directory, file.value);
  if (PosixFileSystem().Exists(path) || (archives && FindContainer(path).ok())) return path;
  if (absolute) return NotFound(named + ": no such file");
  return NotFound(named + ": there is no " + path + " (data.directory = " + directory + ")" +
                  file.Advice());
}

// Likewise for a value that names image sets (image_set_names.h), each relative to the directory.
Result<std::string> FindImageSets(const std::string& directory, const FileSetting& file) {
  std::vector<ImageSetName> sets = SplitImageSets(file.value);
  for (ImageSetName& set : sets) {
    KUMO_ASSIGN_OR_RETURN(set.path, Find(directory, {file.key, set.path}, /*archives=*/true));
  }
  return JoinImageSets(sets);
}

// True if the training files are the user's own and the validation files are the default's.
bool HasOnlyTrainingFiles(const Experiment::Data& data) {
  const Experiment::Data defaults;
  return data.validation_images == defaults.validation_images &&
         data.train_images != defaults.train_images;
}

Result<ReaderRequest> RequestFor(const Experiment::Data& data, const SetFiles& files,
                                 DataPart part) {
  const ReaderTraits reads = TraitsOf(data.reader);
  ReaderRequest request;
  request.part = part;
  request.text = {data.tokens, data.window, data.windows, data.validation_share};
  Result<std::string> images = reads.image_sets
                                   ? FindImageSets(data.directory, files.images)
                                   : Find(data.directory, files.images, reads.archives);
  if (!images.ok() && part == DataPart::kValidation && HasOnlyTrainingFiles(data)) {
    return FailedPrecondition(
        "data.validation_images is not set, but data.train_images is; name the validation set, or "
        "set data.validation_share = 0.1 to take a tenth of the training samples");
  }
  KUMO_RETURN_IF_ERROR(images.status());
  request.images = *std::move(images);
  if (reads.label_files) {
    KUMO_ASSIGN_OR_RETURN(request.labels, Find(data.directory, files.labels, reads.archives));
  }
  request.classes = data.classes;
  request.limit = part == DataPart::kTraining ? data.train_limit : data.validation_limit;
  request.cache = data.cache;
  if (!data.image_size.empty()) {
    KUMO_ASSIGN_OR_RETURN(request.image_size, ParseImageExtents(data.image_size));
  }
  request.resize = data.resize;
  request.skip_damaged = data.damaged == DamagedImages::kSkip;
  request.decode = data.decode;
  request.room = RoomOfOneSet();
  if (reads.class_list && !data.class_list.empty()) {
    KUMO_ASSIGN_OR_RETURN(request.class_list,
                          Find(data.directory, {"data.class_list", data.class_list}));
  }
  request.columns = data.columns;
  request.image_stream = data.ctf_features;
  request.label_stream = data.ctf_labels;
  return request;
}

SetFiles FilesOf(const Experiment::Data& data, DataPart part) {
  if (TraitsOf(data.reader).one_text) return {{"data.text", data.text}, {}};
  if (part == DataPart::kTraining || data.SplitsTrainingFiles())
    return {{"data.train_images", data.train_images}, {"data.train_labels", data.train_labels}};
  return {{"data.validation_images", data.validation_images},
          {"data.validation_labels", data.validation_labels}};
}

// Otherwise a network cannot take both.
Status CheckSameFields(const Datasets& sets) {
  const Fields validation = FieldsAfter(sets.validation->fields(), sets.validation_transforms);
  for (const Field& field : sets.fields()) {
    const int other = FindField(validation, field.name);
    if (other >= 0 && validation[other] == field) continue;
    const std::string theirs =
        other < 0 ? "none" : "one of " + ExtentsText(validation[other].extents);
    return FailedPrecondition("samples of " + sets.train->name() + " have a field \"" + field.name +
                              "\" of " + ExtentsText(field.extents) + ", but samples of " +
                              sets.validation->name() + " have " + theirs + "; use matching files");
  }
  return OkStatus();
}

// Otherwise a class number would mean different classes in the two sets.
Status CheckSameClasses(const Dataset& train, const Dataset& validation) {
  const std::span<const std::string> names = train.class_names();
  const std::span<const std::string> others = validation.class_names();
  const auto [ours, theirs] = std::ranges::mismatch(names, others);
  if (ours == names.end() || theirs == others.end()) return OkStatus();
  return FailedPrecondition(
      "class " + std::to_string(ours - names.begin()) + " is \"" + *ours + "\" in " + train.name() +
      ", but \"" + *theirs + "\" in " + validation.name() +
      "; use the same class folders in both, or name the classes of objects with "
      "data.class_list");
}

// A mean image depends on positions, which scaling moves.
Status CheckMeansFit(const Datasets& sets) {
  const Fields before = sets.train->fields(), after = sets.fields();
  for (const int picture : FindPictures(before)) {
    if (after[picture].extents == before[picture].extents) continue;
    return FailedPrecondition(
        "data.subtract_mean = true, but images of " + sets.train->name() + " are scaled to " +
        ExtentsText(after[picture].extents) +
        " at random (data.crop_area, data.expand, data.object_crop) and so have "
        "no mean image; set data.mean instead");
  }
  return OkStatus();
}

// images: of messages, "images of SET".
Status CheckChannels(const std::string& key, const std::vector<double>& values, const Field& image,
                     const std::string& images) {
  if (std::ssize(values) == image.extents[0] && image.type == NumberType::kUint8) return OkStatus();
  const std::string wrong =
      key + " has " + std::to_string(values.size()) + " values, but " + images;
  if (image.type != NumberType::kUint8) {
    return FailedPrecondition(wrong + " are " + NameOf(image.type) +
                              " and are not converted; remove the setting");
  }
  return FailedPrecondition(wrong + " have " + std::to_string(image.extents[0]) +
                            " channels; give one value per channel");
}

Result<PixelFormula> FormulaOfPicture(const Experiment::Data& data, const Field& image,
                                      const std::string& images) {
  PixelFormula formula;
  formula.scale = static_cast<float>(data.scale);
  if (!data.mean.empty()) {
    KUMO_RETURN_IF_ERROR(CheckChannels("data.mean", data.mean, image, images));
    for (const double mean : data.mean) {
      formula.mean.insert(formula.mean.end(), image.numbers() / image.extents[0],
                          static_cast<float>(mean / data.scale));
    }
  }
  if (!data.std_dev.empty()) {
    KUMO_RETURN_IF_ERROR(CheckChannels("data.std", data.std_dev, image, images));
    for (const double deviation : data.std_dev) {
      formula.scales.push_back(static_cast<float>(data.scale / deviation));
    }
  }
  return formula;
}

}  // namespace

int64_t RoomOfOneSet() {
  const Result<MemoryRoom> room = RoomOnMachine();
  return room.ok() ? static_cast<int64_t>(room->bytes) / kPartsOfMemory : INT64_MAX;
}

Result<std::vector<PixelFormula>> PixelFormulasFor(const Experiment::Data& data,
                                                   const Fields& fields, const std::string& name) {
  PixelFormula plain;
  plain.scale = static_cast<float>(data.scale);
  std::vector<PixelFormula> formulas(fields.size(), plain);
  const std::vector<int> pictures = FindPictures(fields);
  for (const int picture : pictures) {
    const std::string images =
        pictures.size() > 1 ? "images \"" + fields[picture].name + "\" of " : "images of ";
    KUMO_ASSIGN_OR_RETURN(formulas[picture],
                          FormulaOfPicture(data, fields[picture], images + name));
  }
  return formulas;
}

namespace {

// The reader of a job's sets and its requests.
struct Requests {
  const Reader* reader = nullptr;
  ReaderRequest train, validation;
  // The share of the training files that is the validation set, if they are split.
  std::optional<double> validation_share;
  int64_t train_limit = 0, validation_limit = 0;  // of the parts of split files

  // The files are opened once for both parts.
  bool AreEqual() const { return train.originals == validation.originals; }
};

Result<Requests> RequestsFor(const Experiment::Data& data) {
  Requests requests;
  requests.reader = &ReaderOf(data.reader);
  if (TraitsOf(data.reader).one_text && data.text.empty()) {
    return FailedPrecondition("data.reader = " + WriteValue(data.reader) +
                              " requires data.text, the name of the file");
  }
  for (const auto& [part, request] : {std::pair(DataPart::kTraining, &requests.train),
                                      std::pair(DataPart::kValidation, &requests.validation)}) {
    KUMO_ASSIGN_OR_RETURN(*request, RequestFor(data, FilesOf(data, part), part));
  }
  if (data.SplitsTrainingFiles()) {
    requests.validation_share = data.validation_share;
    requests.train.split_share = requests.validation.split_share = data.validation_share;
    requests.train_limit = std::exchange(requests.train.limit, 0);
    requests.validation_limit = std::exchange(requests.validation.limit, 0);
  }
  const bool sized = !data.image_size.empty();
  requests.train.originals = sized && data.ScalesInTraining();
  requests.validation.originals = sized && data.shorter_side > 0;
  return requests;
}

Result<DatasetExtents> Measure(const Reader& reader, const ReaderRequest& request,
                               const Experiment::Data& data, bool training) {
  KUMO_ASSIGN_OR_RETURN(DatasetExtents extents, reader.measure(request));
  KUMO_ASSIGN_OR_RETURN(const Transforms transforms,
                        MakeTransforms({data, extents.fields, request.images, training,
                                        data.classes, extents.samples}));
  extents.fields = FieldsAfter(std::move(extents.fields), transforms);
  KUMO_RETURN_IF_ERROR(PixelFormulasFor(data, extents.fields, request.images).status());
  return extents;
}

}  // namespace

namespace {

Status CheckCanBeSplit(const std::string& name, int64_t samples) {
  if (samples >= 2) return OkStatus();
  return FailedPrecondition(name +
                            ": has one sample, which cannot be split into a training and a "
                            "validation set; set data.validation_images");
}

// Opens the training files once, or once for each part if the parts need other images.
Status OpenSplit(const Requests& requests, Datasets* sets) {
  KUMO_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> train,
                        requests.reader->open(requests.train));
  std::shared_ptr<const Dataset> validation = train;
  if (!requests.AreEqual()) {
    KUMO_ASSIGN_OR_RETURN(validation, requests.reader->open(requests.validation));
  }
  KUMO_RETURN_IF_ERROR(CheckCanBeSplit(train->name(), train->size()));
  const double share = *requests.validation_share;
  sets->train = PartOf(std::move(train), share, SplitPart::kTraining, requests.train_limit);
  sets->validation =
      PartOf(std::move(validation), share, SplitPart::kValidation, requests.validation_limit);
  return OkStatus();
}

Result<Datasets> Open(const Experiment::Data& data, Requests requests) {
  Datasets sets;
  if (requests.validation_share) {
    KUMO_RETURN_IF_ERROR(OpenSplit(requests, &sets));
  } else {
    KUMO_ASSIGN_OR_RETURN(sets.train, requests.reader->open(requests.train));
    const auto names = sets.train->class_names();
    requests.validation.train_names = {names.begin(), names.end()};
    KUMO_ASSIGN_OR_RETURN(sets.validation, requests.reader->open(requests.validation));
    sets.train = WithRoomOf(std::move(sets.train), sets.validation->fields());
    sets.validation = WithRoomOf(std::move(sets.validation), sets.train->fields());
  }
  KUMO_ASSIGN_OR_RETURN(
      sets.transforms,
      MakeTransforms({data, sets.train->fields(), sets.train->name(),
                      /*training=*/true, sets.train->classes(), sets.train->size()}));
  KUMO_ASSIGN_OR_RETURN(
      sets.validation_transforms,
      MakeTransforms({data, sets.validation->fields(), sets.validation->name(),
                      /*training=*/false, sets.validation->classes(), sets.validation->size()}));
  KUMO_RETURN_IF_ERROR(CheckSameFields(sets));
  KUMO_RETURN_IF_ERROR(CheckSameClasses(*sets.train, *sets.validation));
  KUMO_ASSIGN_OR_RETURN(sets.pixels, PixelFormulasFor(data, sets.fields(), sets.train->name()));
  return sets;
}

}  // namespace

Result<Datasets> OpenDatasets(const Experiment::Data& data) {
  KUMO_ASSIGN_OR_RETURN(Requests requests, RequestsFor(data));
  KUMO_ASSIGN_OR_RETURN(Datasets sets, Open(data, std::move(requests)));
  if (data.class_shares.given()) {
    KUMO_ASSIGN_OR_RETURN(sets.sampled, ClassSampling::Make(data.class_shares, sets.train.get()));
  }
  if (data.subtract_mean) {
    KUMO_RETURN_IF_ERROR(CheckMeansFit(sets));
    KUMO_ASSIGN_OR_RETURN(std::vector<std::vector<float>> means, MeanImages(*sets.train));
    for (size_t f = 0; f < means.size(); ++f) sets.pixels[f].mean = std::move(means[f]);
  }
  return sets;
}

Result<Datasets> OpenForSurvey(const Experiment::Data& data, DamagedAtOpening* damaged) {
  KUMO_ASSIGN_OR_RETURN(Requests requests, RequestsFor(data));
  for (const auto& [request, list] : {std::pair(&requests.train, &damaged->train),
                                      std::pair(&requests.validation, &damaged->validation)}) {
    request->skip_damaged = false;
    request->survey = list;
  }
  return Open(data, std::move(requests));
}

namespace {

// Turns the extents of the training files, which both sets share, into extents of the parts.
Status MeasureSplit(const Requests& requests, ExtentsOfDatasets* extents) {
  const int64_t samples = extents->train.samples;
  KUMO_RETURN_IF_ERROR(CheckCanBeSplit(requests.train.images, samples));
  if (requests.AreEqual()) extents->validation.bytes = 0;
  extents->validation.notes = {};
  const int64_t validation = ValidationSamples(samples, *requests.validation_share);
  const auto take = [](int64_t part, int64_t limit, DatasetExtents* of) {
    of->samples = limit > 0 ? std::min(part, limit) : part;
    of->bytes += of->samples * static_cast<int64_t>(sizeof(int64_t));
  };
  take(samples - validation, requests.train_limit, &extents->train);
  take(validation, requests.validation_limit, &extents->validation);
  return OkStatus();
}

}  // namespace

Result<ExtentsOfDatasets> MeasureDatasets(const Experiment::Data& data) {
  KUMO_ASSIGN_OR_RETURN(Requests requests, RequestsFor(data));
  ExtentsOfDatasets extents;
  KUMO_ASSIGN_OR_RETURN(extents.train, Measure(*requests.reader, requests.train, data, true));
  if (!requests.validation_share) requests.validation.train_names = extents.train.class_names;
  KUMO_ASSIGN_OR_RETURN(extents.validation,
                        Measure(*requests.reader, requests.validation, data, false));
  extents.train.fields = WithRoomOf(std::move(extents.train.fields), extents.validation.fields);
  extents.validation.fields =
      WithRoomOf(std::move(extents.validation.fields), extents.train.fields);
  if (requests.validation_share) KUMO_RETURN_IF_ERROR(MeasureSplit(requests, &extents));
  if (data.class_shares.given()) {
    extents.train.bytes += ClassSampling::BytesFor(extents.train.samples);
  }
  return extents;
}

}  // namespace kumo
