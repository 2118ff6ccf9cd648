#include "common/http/page_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace kumo {
namespace {

using testing::Contains;
using testing::IsSubsetOf;

std::string Asset(std::string_view path) {
  for (const PageAsset& asset : PageAssets()) {
    if (asset.path == path) return std::string(asset.bytes);
  }
  ADD_FAILURE() << path << " is not there";
  return "";
}

// What the group of a pattern matches, everywhere in a text.
std::set<std::string> All(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), expression);
       it != std::sregex_iterator(); ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

TEST(PageAssets, WhatThePageLoadsIsThereAndNothingIsElsewhere) {
  std::set<std::string> there;
  for (const PageAsset& asset : PageAssets()) there.insert(std::string(asset.path));
  const std::set<std::string> loaded = All(Asset("/"), "(?:href|src)=\"([^\"]*)\"");
  EXPECT_THAT(loaded, IsSubsetOf(there));
  EXPECT_THAT(loaded, Contains("/chart.js"));
  for (const char* path : {"/", "/page.css", "/page.js"}) {
    EXPECT_EQ(Asset(path).find("://"), std::string::npos) << path;
  }
}

TEST(PageAssets, TheScriptFillsWhatThePageHas) {
  const std::set<std::string> filled = All(Asset("/page.js"), "(?:byId|addChart)\\('([a-z]+)'");
  EXPECT_GT(filled.size(), 10u);
  EXPECT_THAT(filled, IsSubsetOf(All(Asset("/"), "id=\"([a-z]+)\"")));
}

TEST(PageAssets, WhatIsSaidToBeCompressedIsAndIsNoEmptyFile) {
  for (const PageAsset& asset : PageAssets()) {
    EXPECT_EQ(asset.bytes.starts_with("\x1f\x8b"), asset.gzip) << asset.path;
    EXPECT_GT(asset.bytes.size(), 500u) << asset.path;
  }
}

}  // namespace
}  // namespace kumo
