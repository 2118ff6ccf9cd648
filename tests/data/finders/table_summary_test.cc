#include "data/finders/table_summary.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"
#include "tests/scratch_directory.h"

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TableSummaryTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) {
    test::WriteFile(scratch_ / "t.csv", test::Bytes(text.begin(), text.end()));
    return scratch_ / "t.csv";
  }

 private:
  test::ScratchDirectory scratch_;
};

TEST_F(TableSummaryTest, AColumnIsOfTheKindOfItsCells) {
  const auto table =
      SummariseTable(Write("size,photo,name\n1.5,a.jpg,x\n-2,b.PNG,y\n7,c.jpeg,x\n"));
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->columns.size(), 3u);
  EXPECT_EQ(table->rows, 3);
  const TableColumn& size = table->columns[0];
  EXPECT_EQ(size.kind(), CellKind::kNumbers);
  EXPECT_EQ(size.whole, 2);
  EXPECT_EQ(size.least, -2);
  EXPECT_EQ(size.most, 7);
  EXPECT_EQ(table->columns[1].kind(), CellKind::kImages);
  EXPECT_EQ(table->columns[2].kind(), CellKind::kWords);
  EXPECT_THAT(table->columns[2].different, ElementsAre("x", "y"));
  EXPECT_TRUE(table->columns[2].repeats);
  EXPECT_FALSE(size.repeats);
}

TEST_F(TableSummaryTest, ARepetitionBehindTheKeptCellsIsNoticedOfDenseIntegers) {
  std::string dense = "a\n", unlike = "a\n";
  for (size_t i = 0; i <= 2 * kMostDifferentCells; ++i) {
    dense += std::to_string(std::min(i, 2 * kMostDifferentCells - 1)) + "\n";
    unlike += std::to_string(i) + "\n";
  }
  EXPECT_TRUE(SummariseTable(Write(dense))->columns[0].repeats);
  EXPECT_FALSE(SummariseTable(Write(unlike))->columns[0].repeats);
}

TEST_F(TableSummaryTest, AMistakeIsNamedByFileLineColumnAndCell) {
  const auto table = SummariseTable(Write("a,b\n1,2\nn/a,3\n"));
  ASSERT_TRUE(table.ok());
  const TableColumn& column = table->columns[0];
  ASSERT_TRUE(column.no_number);
  EXPECT_EQ(column.no_number->line, 3);
  EXPECT_THAT(table->Error(column, *column.no_number, "is no number").message(),
              HasSubstr("t.csv:3: column \"a\": \"n/a\" is no number"));
  EXPECT_THAT(SummariseTable(Write("1,2\n3,4\n")).status().message(), HasSubstr("t.csv:1: "));
  EXPECT_FALSE(SummariseTable(Write("a,b\n")).ok());
}

TEST_F(TableSummaryTest, CellsOfAColumnAreReadUntilThatIsEnough) {
  const std::string path = Write("a,b\n1,x\n2,y\n3,z\n");
  std::string seen;
  ASSERT_TRUE(ReadColumn(path, 1, [&](const TableCell& cell) {
                seen += cell.text;
                return cell.text != "y";
              }).ok());
  EXPECT_EQ(seen, "xy");
}

}  // namespace
}  // namespace kumo
