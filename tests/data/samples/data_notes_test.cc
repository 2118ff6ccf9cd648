#include "data/samples/data_notes.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DataNotes, FilesAreCountedByTheirEndings) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(left_out.Text(), "");
  for (const char* path : {"a/1.webp", "2.WebP", "b.c/no_ending", ".hidden", "3.2024", "4.gif",
                           "5.an_ending_that_is_none"}) {
    left_out.AddFile(path);
  }
  EXPECT_FALSE(left_out.empty());
  EXPECT_EQ(left_out.files, 7);
  EXPECT_EQ(left_out.Text(), "left out: 7 files (no ending 3, .webp 2, .gif 1, .hidden 1)");
}

TEST(DataNotes, LongListsEndInDots) {
  LeftOut left_out;
  for (const char* path : {"1.a", "2.b", "3.c", "4.d", "5.e"}) left_out.AddFile(path);
  left_out.hidden_files = 1;
  left_out.hidden_folders = 2;
  left_out.unusable = {"x is a pipe"};
  left_out.empty_classes = {"p", "q", "r", "s", "t"};
  EXPECT_EQ(left_out.Text(),
            "left out: 5 files (.a 1, .b 1, .c 1, .d 1, ...), 1 hidden file, 2 hidden folders, "
            "1 unusable entry (x is a pipe), 5 classes without images (p, q, r, s, ...)");
}

TEST(DataNotes, EndingsAreMadePrintable) {
  LeftOut left_out;
  left_out.AddFile("1.\x1b[2J");
  const std::string text = left_out.Text();
  EXPECT_EQ(text.find('\x1b'), text.npos) << text;
}

TEST(DataNotes, EachNoteIsALine) {
  DataNotes notes;
  EXPECT_THAT(notes.Lines(), IsEmpty());
  notes.remarks = {"the images are dark"};
  EXPECT_THAT(notes.Lines(), ElementsAre("the images are dark"));
  notes.left_out.hidden_files = 2;
  EXPECT_THAT(notes.Lines(), ElementsAre("left out: 2 hidden files", "the images are dark"));
}

}  // namespace
}  // namespace kumo
