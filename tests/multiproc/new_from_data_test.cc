// An experiment for one's own data, from the folder to a network that has learnt.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/rng.h"
#include "tests/data/image_bytes.h"
#include "tests/multiproc/cluster_of_processes.h"

namespace kumo::multiproc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NewFromData, WhatIsWrittenPassesTheCheckAndLearns) {
  ClusterOfProcesses job("new");
  std::filesystem::current_path(job.folder());
  const Ended made = job.Run("kumo", {"new", "mine", "--data", SmallDigits()});
  ASSERT_EQ(made.code, 0) << made.output;
  EXPECT_THAT(made.output, AllOf(HasSubstr("IDX files of 10 classes"), HasSubstr("mine.conf"),
                                 HasSubstr("training samples of 1x28x28")));
  const std::string file = job.Path("mine.conf");
  const Ended checked = job.Run("kumo", {"check", file, "--data"});
  EXPECT_EQ(checked.code, 0) << checked.output;
  const Ended trained = job.Run("kumo", {"launch", file, "--set", "job.epochs=2", "--set",
                                         "output.directory=" + job.output()});
  EXPECT_EQ(trained.code, 0) << trained.output;
  EXPECT_THAT(trained.output, testing::ContainsRegex("validation accuracy 0.[6-9]"));
  std::filesystem::current_path("/");
}

// Every form of data that kumo new knows, except IDX files (above).
TEST(NewFromData, EachFormOfDataGetsFilesThatPassTheCheck) {
  ClusterOfProcesses job("new_forms");
  std::filesystem::current_path(job.folder());
  const std::string text = job.Path("book.txt");
  std::ofstream(text) << std::string(2000, 'a') + std::string(2000, 'b');
  const std::string numbers = job.Path("numbers.ctf");
  std::ofstream lines(numbers);
  for (int i = 0; i < 40; ++i) lines << "|features " << i << " 1 |labels " << i % 2 << "\n";
  lines.close();
  const std::string cifar = job.Path("cifar");
  std::filesystem::create_directory(cifar);
  for (const char* file : {"data_batch_1.bin", "test_batch.bin"}) {
    std::ofstream(std::filesystem::path(cifar) / file) << std::string(20 * 3073, '\1');
  }
  for (const std::string& data : {text, numbers, cifar}) {
    SCOPED_TRACE(data);
    const std::string name = std::filesystem::path(data).stem().string() + "-new";
    const Ended made = job.Run("kumo", {"new", name, "--data", data});
    EXPECT_EQ(made.code, 0) << made.output;
    const Ended checked = job.Run("kumo", {"check", name + ".conf"});
    EXPECT_EQ(checked.code, 0) << checked.output;
  }
  std::filesystem::current_path("/");
}

// Makes an experiment for the data, checks it, and trains it. The figure behind "validation NAME"
// in its last line.
double FigureOf(ClusterOfProcesses& job, const std::string& data, const std::string& name,
                const std::vector<std::string>& settings, const std::string& output_of_new) {
  std::filesystem::current_path(job.folder());
  const std::string experiment = std::filesystem::path(data).stem().string() + "-new";
  const Ended made = job.Run("kumo", {"new", experiment, "--data", data});
  EXPECT_EQ(made.code, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr(output_of_new));
  const Ended checked = job.Run("kumo", {"check", experiment + ".conf", "--data"});
  EXPECT_EQ(checked.code, 0) << checked.output;
  std::vector<std::string> arguments = {"launch", experiment + ".conf", "--set",
                                        "output.directory=" + job.Path("out-" + experiment)};
  for (const std::string& setting : settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  const Ended trained = job.Run("kumo", arguments);
  std::filesystem::current_path("/");
  EXPECT_EQ(trained.code, 0) << trained.output;
  const std::string before = "done: validation " + name + " ";
  const size_t at = trained.output.find(before);
  if (at == trained.output.npos) {
    ADD_FAILURE() << trained.output;
    return 0;
  }
  return std::strtod(trained.output.c_str() + at + before.size(), nullptr);
}

// A class lies around a centre of its own; no column alone tells it.
TEST(NewFromData, ATableOfNumbersLearnsItsClasses) {
  ClusterOfProcesses job("new_table");
  Rng rng(1, RngPurpose::kTest);
  std::ofstream table(job.Path("flowers.csv"));
  table << "id,sepal length,sepal width,petal,species\n";
  const char* const names[] = {"setosa", "versicolor", "virginica"};
  for (int row = 0; row < 150; ++row) {
    const int species = static_cast<int>(rng.NextBelow(3));
    const auto near = [&](double centre) {
      return std::to_string(centre + (rng.NextUniform() + rng.NextUniform() - 1) * 1.5);
    };
    table << row << "," << near(species == 0 ? 4 : 6) << "," << near(species == 1 ? 400 : 402)
          << "," << near(species) << "," << names[species] << "\n";
  }
  table.close();
  EXPECT_GE(FigureOf(job, job.Path("flowers.csv"), "accuracy", {},
                     "the label, a class: setosa, versicolor, virginica"),
            0.8);
  // Neither an id nor a label is needed.
  std::ofstream(job.Path("found.csv")) << "petal,sepal width,sepal length\n0,402,4\n";
  const Ended predicted = job.Run("kumo", {"predict", job.Path("flowers-new.conf"), "--set",
                                           "output.directory=" + job.Path("out-flowers-new"),
                                           "--input", job.Path("found.csv")});
  EXPECT_EQ(predicted.code, 0) << predicted.output;
  EXPECT_THAT(predicted.output, testing::ContainsRegex("found.csv:1 +0 setosa"));
}

TEST(NewFromData, ATableLearnsANumber) {
  ClusterOfProcesses job("new_regression");
  Rng rng(2, RngPurpose::kTest);
  std::filesystem::create_directory(job.Path("houses"));
  for (const auto& [name, rows] : {std::pair("train.csv", 300), std::pair("test.csv", 50)}) {
    std::ofstream table(job.Path("houses/") + name);
    table << "rooms,area,price\n";
    for (int row = 0; row < rows; ++row) {
      const int rooms = static_cast<int>(1 + rng.NextBelow(6));
      const double area = 20 + 100 * rng.NextUniform();
      // Prices have a variance of about 10,000.
      table << rooms << "," << area << "," << 500 + 40 * rooms + 2.5 * area << "\n";
    }
  }
  EXPECT_LE(FigureOf(job, job.Path("houses"), "loss", {}, "the label, a number"), 1000);
}

// A bright rectangle on a dark background.
TEST(NewFromData, ImagesWithMasksLearnTheClassOfEachPixel) {
  ClusterOfProcesses job("new_masks");
  Rng rng(3, RngPurpose::kTest);
  constexpr int64_t kSide = 16;
  test::NamedFiles files;
  for (int i = 0; i < 40; ++i) {
    test::Bytes pixels(3 * kSide * kSide), mask(kSide * kSide);
    const auto left = static_cast<int64_t>(rng.NextBelow(8));
    const auto top = static_cast<int64_t>(rng.NextBelow(8));
    for (int64_t p = 0; p < kSide * kSide; ++p) {
      const int64_t y = p / kSide - top, x = p % kSide - left;
      mask[p] = y >= 0 && y < 8 && x >= 0 && x < 8 ? 1 : 0;
      for (int64_t c = 0; c < 3; ++c) {
        pixels[c * kSide * kSide + p] =
            static_cast<uint8_t>(rng.NextBelow(60) + (mask[p] == 1 ? 150 : 20));
      }
    }
    mask[0] = 255;
    const std::string name = std::to_string(i) + ".png";
    files.emplace_back("images/" + name, test::Png({3, kSide, kSide}, pixels));
    files.emplace_back("masks/" + name, test::MaskPng(kSide, kSide, mask));
  }
  test::WriteFiles(job.Path("squares"), files);
  EXPECT_GE(FigureOf(job, job.Path("squares"), "accuracy", {"job.epochs=10"},
                     "images with masks of 2 classes"),
            0.9);
}

}  // namespace
}  // namespace kumo::multiproc
