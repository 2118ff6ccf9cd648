#include "common/base/text_table.h"

#include <sstream>

#include <gtest/gtest.h>

#include "common/base/terminal.h"

namespace kumo {
namespace {

const std::vector<TextColumn> kHeader = {{"worker", false}, {"samples/s"}, {"state", false}};
const std::vector<std::vector<std::string>> kRows = {{"worker-10", "5", "trains partition 3"},
                                                     {"w", "12345", "waits"}};

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(FormatTextTable(kHeader, kRows, 0),
            "worker     samples/s  state\n"
            "worker-10          5  trains partition 3\n"
            "w              12345  waits\n");
  EXPECT_EQ(FormatTextTable(kHeader, kRows, 40), FormatTextTable(kHeader, kRows, 0));
  EXPECT_EQ(FormatTextTable(kHeader, {}, 0), "worker  samples/s  state\n");
}

TEST(TextTable, WhatDoesNotFitStandsInAFurtherLine) {
  EXPECT_EQ(FormatTextTable(kHeader, kRows, 39),
            "worker     samples/s\n"
            "    state\n"
            "worker-10          5\n"
            "    trains partition 3\n"
            "w              12345\n"
            "    waits\n");
}

TEST(TextTable, IsNeverWiderThanTheTerminalAndLosesNoShortCell) {
  for (int columns = 20; columns < 50; ++columns) {
    const std::string text = FormatTextTable(kHeader, kRows, columns);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(ColumnsOf(line), columns) << text;
    for (const char* cell : {"worker-10", "12345", "waits", "samples/s"}) {
      EXPECT_NE(text.find(cell), std::string::npos) << text;
    }
  }
}

TEST(TextTable, ALastColumnOfTextIsFoldedInItsColumn) {
  const std::vector<TextColumn> header = {{"", false}, {""}, {"", false}};
  const std::vector<std::vector<std::string>> rows = {
      {"carried state", "1.64 MiB", "sync.partitions, sync.push_codec, block.reset_local_state"},
      {"weights", "4 MiB", "network.file"}};
  EXPECT_EQ(FormatTextTable(header, rows, 60),
            "carried state  1.64 MiB  sync.partitions, sync.push_codec,\n"
            "                         block.reset_local_state\n"
            "weights           4 MiB  network.file\n");
}

TEST(TextTable, AFurtherLineWithoutCellsDisappears) {
  EXPECT_EQ(
      FormatTextTable(kHeader, {{{"worker-10", "5", ""}, {"w", "1", "trains partition 31"}}}, 30),
      "worker     samples/s\n"
      "    state\n"
      "worker-10          5\n"
      "w                  1\n"
      "    trains partition 31\n");
}

TEST(TextTable, AColumnWithoutCellsIsLeftOut) {
  EXPECT_EQ(FormatTextTable(kHeader, {{{"w", "", "waits"}}}, 0), "worker  state\nw       waits\n");
  EXPECT_EQ(WidthOfTextTable(kHeader, {{{"w", "", "waits"}}}), 13);
}

}  // namespace

}  // namespace kumo
