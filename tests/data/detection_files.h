// Detection data as files, and the objects of samples.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/samples/dataset.h"
#include "tests/data/image_bytes.h"

namespace kumo::test {

struct XmlObject {
  std::string name;
  std::array<double, 4> corners;  // xmin, ymin, xmax, ymax
  bool difficult = false;
};

inline std::string VocXml(int64_t width, int64_t height, const std::vector<XmlObject>& objects) {
  std::ostringstream xml;
  xml << "<annotation>\n\t<size><width>" << width << "</width><height>" << height
      << "</height><depth>3</depth></size>\n";
  for (const XmlObject& object : objects) {
    xml << "\t<object>\n\t\t<name>" << object.name << "</name>\n\t\t<pose>Left</pose>\n"
        << "\t\t<difficult>" << (object.difficult ? 1 : 0) << "</difficult>\n\t\t<bndbox>";
    const char* const names[] = {"xmin", "ymin", "xmax", "ymax"};
    for (int i = 0; i < 4; ++i) {
      xml << "<" << names[i] << ">" << object.corners[i] << "</" << names[i] << ">";
    }
    xml << "</bndbox>\n\t</object>\n";
  }
  xml << "</annotation>\n";
  return xml.str();
}

inline Bytes ToBytes(const std::string& text) { return {text.begin(), text.end()}; }

// One image of a layout of Pascal VOC.
struct VocImage {
  std::string name;
  std::vector<XmlObject> objects;
  std::vector<int64_t> extents = {3, 20, 30};
};

// Annotations, images (image i has ImagePixels(i)) and the list ImageSets/Main/`set`.txt of all, or
// no list, below the folder `root` ("VOC2007/").
inline NamedFiles VocLayout(const std::string& root, const std::vector<VocImage>& images,
                            const std::string& set) {
  NamedFiles files;
  std::string list;
  for (size_t i = 0; i < images.size(); ++i) {
    const VocImage& image = images[i];
    files.emplace_back(root + "Annotations/" + image.name + ".xml",
                       ToBytes(VocXml(image.extents[2], image.extents[1], image.objects)));
    files.emplace_back(root + "JPEGImages/" + image.name + ".png",
                       Png(image.extents, ImagePixels(static_cast<int64_t>(i), image.extents)));
    list += image.name + "\n";
  }
  if (!set.empty()) files.emplace_back(root + "ImageSets/Main/" + set + ".txt", ToBytes(list));
  return files;
}

struct CocoObjectEntry {
  int64_t category;           // from 0
  std::array<double, 4> box;  // x, y, width, height
  bool crowd = false;
};

// One image of COCO's JSON.
struct CocoEntry {
  std::string file;
  std::vector<CocoObjectEntry> objects;
  std::vector<int64_t> extents = {3, 20, 30};
};

// Image i has the id 1000 - i. Category c has the id 2 c + 1 and the name "z", "y", ...
inline std::string CocoJson(const std::vector<CocoEntry>& entries, int64_t categories) {
  std::ostringstream images, objects, names;
  int64_t number = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const CocoEntry& entry = entries[i];
    images << (i == 0 ? "" : ",") << "\n{\"license\":4,\"file_name\":\"" << entry.file
           << "\",\"height\":" << entry.extents[1] << ",\"width\":" << entry.extents[2]
           << ",\"id\":" << 1000 - i << "}";
    for (const CocoObjectEntry& object : entry.objects) {
      objects << (number == 0 ? "" : ",")
              << "\n{\"segmentation\":[[1.5,2,3e1]],\"iscrowd\":" << (object.crowd ? 1 : 0)
              << ",\"image_id\":" << 1000 - i << ",\"bbox\":[" << object.box[0] << ","
              << object.box[1] << "," << object.box[2] << "," << object.box[3]
              << "],\"category_id\":" << 2 * object.category + 1 << ",\"id\":" << number + 1 << "}";
      ++number;
    }
  }
  for (int64_t c = 0; c < categories; ++c) {
    names << (c == 0 ? "" : ",") << "{\"supercategory\":\"letter\",\"id\":" << 2 * c + 1
          << ",\"name\":\"" << static_cast<char>('z' - c) << "\"}";
  }
  return "{\"info\":{\"year\":2017,\"images\":[]},\"images\":[" + images.str() +
         "],\"annotations\":[" + objects.str() + "],\"categories\":[" + names.str() + "]}";
}

using Corners = std::array<float, 4>;  // left, top, right, bottom

// A sample of a detection set.
struct Detection {
  std::vector<int64_t> extents;
  std::vector<uint8_t> pixels;
  std::vector<Corners> boxes;
  std::vector<int32_t> classes;
  std::vector<uint8_t> difficult;
  bool operator==(const Detection&) const = default;
};

template <typename T>
std::vector<T> EntriesOf(const Sample& sample, int field) {
  const auto bytes = sample.field(field);
  std::vector<T> entries(bytes.size() / sizeof(T));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), bytes.size());
  EXPECT_EQ(std::ssize(entries), sample.extents(field)[0]);
  return entries;
}

inline Detection DetectionOf(const Sample& sample) {
  const auto extents = sample.extents(0);
  const auto pixels = sample.pixels(0);
  return {{extents.begin(), extents.end()},
          {pixels.begin(), pixels.end()},
          EntriesOf<Corners>(sample, 1),
          EntriesOf<int32_t>(sample, 2),
          EntriesOf<uint8_t>(sample, 3)};
}

// All samples; fails the test if one cannot be read.
inline std::vector<Detection> DetectionsIn(const Dataset& dataset) {
  std::vector<Detection> detections;
  Sample sample(dataset.fields());
  for (int64_t i = 0; i < dataset.size(); ++i) {
    sample.Reset(dataset.fields());
    const Status read = dataset.Read(i, &sample);
    EXPECT_TRUE(read.ok()) << read.message();
    if (read.ok()) detections.push_back(DetectionOf(sample));
  }
  return detections;
}

}  // namespace kumo::test
