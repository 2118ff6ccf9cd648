#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/base/printable.h"
#include "common/base/text_table.h"
#include "worker/inference/prediction.h"

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

bool OfMasks(const Predictions& predictions) {
  return !predictions.samples.empty() && !predictions.samples[0].mask.empty();
}

bool OfNumbers(const Predictions& predictions) {
  return !predictions.samples.empty() && predictions.samples[0].classes.empty();
}

// Each image's name and its mask's.
std::string TableOfMasks(const Predictions& predictions) {
  std::vector<std::vector<std::string>> rows;
  for (const Prediction& sample : predictions.samples) {
    rows.push_back({Printable(sample.file), Printable(sample.mask)});
  }
  const TextColumn header[] = {{"sample", /*right=*/false}, {"mask", /*right=*/false}};
  return FormatTextTable(header, rows, 0);
}

// Each sample's name and numbers.
std::string TableOfNumbers(const Predictions& predictions) {
  std::string text;
  for (const Prediction& sample : predictions.samples) {
    text += Printable(sample.file) + " ";
    for (const float number : sample.numbers) {
      char digits[32];
      std::snprintf(digits, sizeof digits, " %.6g", static_cast<double>(number));
      text += digits;
    }
    text += "\n";
  }
  return text;
}

// Each sample's name once, in the line of its likeliest class.
std::string Table(const Predictions& predictions) {
  if (predictions.samples.empty()) return "";
  if (OfMasks(predictions)) return TableOfMasks(predictions);
  if (OfNumbers(predictions)) return TableOfNumbers(predictions);
  constexpr size_t kGap = 2;
  size_t file_width = sizeof "sample" - 1;
  size_t class_width = sizeof "class" - 1;
  for (const Prediction& sample : predictions.samples) {
    file_width = std::max(file_width, Printable(sample.file).size());
    for (const Likely& likely : sample.classes) {
      class_width = std::max(class_width, Title(likely).size());
    }
  }
  std::string text;
  const auto line = [&](std::string file, std::string title, const std::string& probability) {
    file.resize(file_width + kGap, ' ');
    title.resize(class_width + kGap, ' ');
    text += file + title + probability + "\n";
  };
  line("sample", "class", "probability");
  for (const Prediction& sample : predictions.samples) {
    std::string file = Printable(sample.file);
    for (const Likely& likely : sample.classes) {
      line(std::exchange(file, ""), Title(likely), Rounded(likely.probability));
    }
  }
  return text;
}

std::string Json(const Predictions& predictions) {
  JsonArray samples;
  for (const Prediction& sample : predictions.samples) {
    JsonArray classes;
    for (const Likely& likely : sample.classes) {
      JsonFields one;
      one.Add("class", likely.number);
      if (!likely.name.empty()) one.Add("name", likely.name);
      classes.Add(one.Add("probability", likely.probability));
    }
    JsonFields fields;
    fields.Add("file", sample.file);
    if (OfMasks(predictions)) {
      samples.Add(fields.Add("mask", sample.mask));
    } else if (OfNumbers(predictions)) {
      JsonArray numbers;
      for (const float number : sample.numbers) numbers.Add(static_cast<double>(number));
      samples.Add(fields.Add("numbers", numbers));
    } else {
      samples.Add(fields.Add("classes", classes));
    }
  }
  JsonArray damaged;
  for (const std::string& one : predictions.damaged) damaged.Add(one);
  return JsonFields()
             .Add("checkpoint", predictions.checkpoint)
             .Add("samples", samples)
             .Add("damaged", damaged)
             .object() +
         "\n";
}

// Quoted only if necessary.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string CsvOfNumbers(const Predictions& predictions) {
  std::string text = "file,index,number\r\n";
  for (const Prediction& sample : predictions.samples) {
    for (size_t i = 0; i < sample.numbers.size(); ++i) {
      text += CsvField(sample.file) + "," + std::to_string(i) + "," +
              ToJson(static_cast<double>(sample.numbers[i])) + "\r\n";
    }
  }
  return text;
}

std::string CsvOfMasks(const Predictions& predictions) {
  std::string text = "file,mask\r\n";
  for (const Prediction& sample : predictions.samples) {
    text += CsvField(sample.file) + "," + CsvField(sample.mask) + "\r\n";
  }
  return text;
}

std::string Csv(const Predictions& predictions) {
  if (OfMasks(predictions)) return CsvOfMasks(predictions);
  if (OfNumbers(predictions)) return CsvOfNumbers(predictions);
  std::string text = "file,rank,class,name,probability\r\n";
  for (const Prediction& sample : predictions.samples) {
    for (size_t i = 0; i < sample.classes.size(); ++i) {
      const Likely& likely = sample.classes[i];
      text += CsvField(sample.file) + "," + std::to_string(i + 1) + "," +
              std::to_string(likely.number) + "," + CsvField(likely.name) + "," +
              ToJson(likely.probability) + "\r\n";
    }
  }
  return text;
}

}  // namespace

std::string TextOf(const Predictions& predictions, AnswerFormat format) {
  if (format == AnswerFormat::kJson) return Json(predictions);
  return format == AnswerFormat::kCsv ? Csv(predictions) : Table(predictions);
}

}  // namespace kumo
