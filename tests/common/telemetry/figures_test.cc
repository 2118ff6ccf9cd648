// The names of figures against docs/formats.md.
#include "common/telemetry/figures.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(Figures, EachHasAMeaningAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Figure& figure : figure::kAll) {
    EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
    EXPECT_FALSE(figure.meaning.empty()) << figure.name;
  }
}

TEST(Figures, TheDocumentationListsThemAsTheyAre) {
  std::ifstream file(KUMO_SOURCE_DIRECTORY "/docs/formats.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const Figure& figure : figure::kAll) {
    EXPECT_THAT(text.str(), testing::HasSubstr("| `" + std::string(figure.name) + "` | " +
                                               std::string(figure.meaning) + " |\n"));
  }
}

}  // namespace
}  // namespace kumo
