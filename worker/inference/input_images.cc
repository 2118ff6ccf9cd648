#include "worker/inference/input_images.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <glog/logging.h>

#include "common/base/text.h"
#include "data/readers/image_set.h"

namespace kumo {

Status InputImages::Add(const std::string& input, const std::string& advice) {
  Source source;
  // A path that is no archive by its name is a file.
  std::error_code error;
  if (IsImageName(input) && std::filesystem::is_regular_file(input, error)) {
    source.files = {input};
    sources_.push_back(std::move(source));
    ++size_;
    return OkStatus();
  }
  Result<ImageContainer> container = FindContainer(input);
  if (container.status().code() == StatusCode::kNotFound) {
    return NotFound(input + ": no such image, folder or archive");
  }
  KUMO_ASSIGN_OR_RETURN(source.container, std::move(container));
  Result<ImageListing> listing = ListImages(source.container);
  if (listing.status().code() == StatusCode::kDataLoss) {
    return InvalidArgument(listing.status().message() + "; it is neither an image " +
                           kImageEndings + " nor a folder" + advice);
  }
  KUMO_RETURN_IF_ERROR(listing.status());
  if (!listing->left_out.empty()) LOG(WARNING) << input << ": " << listing->left_out.Text();
  if (listing->images.empty() && listing->unusable.empty()) {
    return InvalidArgument(input + ": contains no images " + kImageEndings);
  }
  for (const auto& [name, why] : listing->unusable) {
    unusable_.push_back(source.container.Name(name) + ": " + why);
  }
  source.files = std::move(listing->images);
  size_ += std::ssize(source.files);
  sources_.push_back(std::move(source));
  return OkStatus();
}

Result<InputImages> InputImages::Find(std::span<const std::string> inputs,
                                      const std::string& advice) {
  InputImages images;
  for (const std::string& input : inputs) KUMO_RETURN_IF_ERROR(images.Add(input, advice));
  return images;
}

std::vector<std::string> InputImages::folders() const {
  std::set<std::string> folders;
  for (const Source& source : sources_) {
    if (source.container.archive) continue;
    for (const std::string& name : source.files) {
      const std::string path = source.container.path.empty() ? name : source.container.Name(name);
      const std::string folder = std::filesystem::path(path).parent_path();
      folders.insert(folder.empty() ? "." : folder);
    }
  }
  return {folders.begin(), folders.end()};
}

Status InputImages::Read(const See& see) const {
  int64_t first = 0;
  for (const Source& source : sources_) {
    const auto see_one = [&](int64_t index, const Result<std::span<const uint8_t>>& content) {
      const std::string& name = source.files[index];
      return see(first + index, source.container.path.empty() ? name : source.container.Name(name),
                 content);
    };
    KUMO_RETURN_IF_ERROR(ReadImages(source.container, source.files, see_one));
    first += std::ssize(source.files);
  }
  return OkStatus();
}

Status CheckTakesImages(const Graph& graph, const std::string& advice) {
  if (graph.inputs.size() > 1) {
    return InvalidArgument("network " + graph.name + " has " +
                           Counted(std::ssize(graph.inputs), "input") + " (" + Join(graph.inputs) +
                           "), but images alone are given; kumo evaluate takes whole samples");
  }
  if (graph.inputs.empty() || graph.values[0].vocabulary > 0) {
    return InvalidArgument("network " + graph.name + " takes no images" + advice);
  }
  const Shape& input = graph.values[0].shape;
  if (input.rank() <= 3 && (input.channels() == 1 || input.channels() == 3)) return OkStatus();
  return InvalidArgument("network " + graph.name + " takes " + input.ToString() +
                         ", but images have 1 channel (grey) or 3 (colour)");
}

bool IsOfOneImage(const Status& error) {
  return IsDamage(error) || error.code() == StatusCode::kFailedPrecondition;  // no permission
}

Status DamageOf(size_t damaged, size_t whole, bool skips) {
  if (damaged == 0 || (skips && whole > 0)) return OkStatus();
  return DataLoss(std::to_string(damaged) + " of " +
                  Counted(static_cast<int64_t>(damaged + whole), "image", "images") +
                  " cannot be read; repair or remove these files" +
                  (skips ? "" : ", or skip damaged images with --set data.damaged=skip"));
}

}  // namespace kumo
