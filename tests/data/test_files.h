// Small files for the tests: IDX bytes, gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

namespace kumo::test {

using Bytes = std::vector<uint8_t>;

inline void WriteFile(const std::string& path, const Bytes& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  // A new file each time: a file system may sync one that is truncated and written anew.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.flush().good()) << path;
}

inline Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

inline Bytes Gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, bytes.size()) + 64);
  stream.next_in = const_cast<uint8_t*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// A whole IDX file of unsigned bytes.
inline Bytes Idx(const std::vector<uint32_t>& extents, const Bytes& content) {
  Bytes bytes = {0, 0, 8, static_cast<uint8_t>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<uint8_t>(extent >> shift));
  }
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

// `size` bytes, each of its own: neither too regular nor random.
inline Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * i * 7 + i * 31 + (i >> 5));
  return bytes;
}

// Labels 0, 1, ... classes - 1, 0, 1, ...
inline Bytes Labels(size_t size, int classes) {
  Bytes labels(size);
  for (size_t i = 0; i < size; ++i) labels[i] = static_cast<uint8_t>(i % classes);
  return labels;
}

}  // namespace kumo::test
