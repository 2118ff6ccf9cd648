#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/json.h"
#include "common/base/printable.h"
#include "worker/prediction.h"

namespace kumo {
namespace {

std::string Rounded(double probability) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", probability);
  return text;
}

std::string Title(const Likely& likely) {
  const std::string number = std::to_string(likely.number);
  return likely.name.empty() ? number : number + " " + Printable(likely.name);
}

// Each image's name once, beside its likeliest class.
std::string Table(const Predictions& predictions) {
  constexpr size_t kGap = 2;
  size_t file_width = sizeof "image" - 1;
  size_t class_width = sizeof "class" - 1;
  for (const Prediction& image : predictions.images) {
    file_width = std::max(file_width, Printable(image.file).size());
    for (const Likely& likely : image.classes) {
      class_width = std::max(class_width, Title(likely).size());
    }
  }
  std::string text;
  const auto line = [&](std::string file, std::string title, const std::string& probability) {
    file.resize(file_width + kGap, ' ');
    title.resize(class_width + kGap, ' ');
    text += file + title + probability + "\n";
  };
  line("image", "class", "probability");
  for (const Prediction& image : predictions.images) {
    std::string file = Printable(image.file);
    for (const Likely& likely : image.classes) {
      line(std::exchange(file, ""), Title(likely), Rounded(likely.probability));
    }
  }
  return text;
}

std::string Json(const Predictions& predictions) {
  JsonArray images;
  for (const Prediction& image : predictions.images) {
    JsonArray classes;
    for (const Likely& likely : image.classes) {
      JsonFields one;
      one.Add("class", likely.number);
      if (!likely.name.empty()) one.Add("name", likely.name);
      classes.Add(one.Add("probability", likely.probability));
    }
    images.Add(JsonFields().Add("file", image.file).Add("classes", classes));
  }
  return JsonFields().Add("checkpoint", predictions.checkpoint).Add("images", images).object() +
         "\n";
}

// In quotes where it must be.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Csv(const Predictions& predictions) {
  std::string text = "file,rank,class,name,probability\r\n";
  for (const Prediction& image : predictions.images) {
    for (size_t i = 0; i < image.classes.size(); ++i) {
      const Likely& likely = image.classes[i];
      text += CsvField(image.file) + "," + std::to_string(i + 1) + "," +
              std::to_string(likely.number) + "," + CsvField(likely.name) + "," +
              ToJson(likely.probability) + "\r\n";
    }
  }
  return text;
}

}  // namespace

std::string TextOf(const Predictions& predictions, const std::string& format) {
  if (format == "json") return Json(predictions);
  return format == "csv" ? Csv(predictions) : Table(predictions);
}

}  // namespace kumo
