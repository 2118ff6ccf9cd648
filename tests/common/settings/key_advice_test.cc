#include "common/settings/key_advice.h"

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/settings/option_table.h"

namespace kumo {
namespace {

using testing::HasSubstr;

std::vector<std::string> Split(std::string_view words) {
  std::istringstream stream{std::string(words)};
  std::vector<std::string> split;
  for (std::string word; stream >> word;) split.push_back(word);
  return split;
}

TEST(KeyAdvice, AKeyWithoutItsSectionIsGivenAllThatItMayBe) {
  EXPECT_EQ(KeyAdvice("epochs"), "; did you mean job.epochs?");
  EXPECT_EQ(KeyAdvice("momentum"), "; did you mean block.momentum or optimiser.momentum?");
  EXPECT_EQ(KeyAdvice("learning_rate"),
            "; did you mean block.learning_rate or schedule.learning_rate?");
  EXPECT_EQ(KeyAdvice("minibatch"), "; did you mean sync.minibatch or evaluation.minibatch?");
  EXPECT_EQ(KeyAdvice("device"), "; did you mean network.device?");
  EXPECT_EQ(KeyAdvice("workers"), "; did you mean cluster.workers?");
}

TEST(KeyAdvice, AWordOfTheFieldIsGivenItsKey) {
  EXPECT_EQ(KeyAdvice("lr"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(KeyAdvice("optimiser.lr"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(KeyAdvice("batch_size"), "; did you mean sync.minibatch or evaluation.minibatch?");
  EXPECT_EQ(KeyAdvice("sync.batch"), "; did you mean sync.minibatch?");
  EXPECT_EQ(KeyAdvice("optimizer"), "; did you mean optimiser.type?");
  EXPECT_EQ(KeyAdvice("gpu"), "; did you mean network.device?");
  EXPECT_EQ(KeyAdvice("BatchSize"), KeyAdvice("batch_size"));
}

TEST(KeyAdvice, OfTwoKeysThatOfTheSectionIsMeant) {
  EXPECT_EQ(KeyAdvice("optimizer.momentum"), "; did you mean optimiser.momentum?");
  EXPECT_EQ(KeyAdvice("scheduler.learning_rate"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(KeyAdvice("snyc.minibatch"), "; did you mean sync.minibatch?");
  EXPECT_EQ(KeyAdvice("data.partitions"), "; did you mean sync.partitions?");
}

TEST(KeyAdvice, AMistypedKeyIsGivenTheNearest) {
  EXPECT_EQ(KeyAdvice("sync.minibach"), "; did you mean sync.minibatch?");
  EXPECT_EQ(KeyAdvice("lerning_rate"), KeyAdvice("learning_rate"));
  EXPECT_EQ(KeyAdvice("zzzzzzzzzzzz"), "");
  EXPECT_EQ(KeyAdvice(""), "");
  EXPECT_EQ(KeyAdvice("."), "");
  EXPECT_EQ(KeyAdvice(std::string(100000, 'a') + "." + std::string(100000, 'a')), "");
}

TEST(KeyAdvice, AnIncludeInASectionIsSentToTheTopOfTheFile) {
  EXPECT_THAT(KeyAdvice("sync.include"), HasSubstr("before the first [section]"));
}

TEST(KeyAdvice, EveryKeyIsFoundByItsNameAloneAndByEveryWordForIt) {
  const OptionTable& table = OptionTable::Shared();
  for (const Option& option : table.options()) {
    EXPECT_THAT(KeyAdvice(option.name()), HasSubstr(option.key));
    for (const std::string& word : Split(option.also)) {
      EXPECT_THAT(KeyAdvice(word), HasSubstr(option.key)) << word;
      EXPECT_THAT(KeyAdvice(option.section() + "." + word), HasSubstr(option.key)) << word;
      EXPECT_EQ(table.Find(option.section() + "." + word), nullptr) << word << " is a key itself";
    }
  }
}

TEST(SectionAdvice, FindsSectionsBySpellingAndByEveryWordForThem) {
  const OptionTable& table = OptionTable::Shared();
  EXPECT_EQ(SectionAdvice("snyc"), "; did you mean sync?");
  EXPECT_EQ(SectionAdvice("Model"), "; did you mean network?");
  EXPECT_EQ(SectionAdvice("nonsense"), "");
  for (const std::string& section : table.sections()) {
    for (const std::string& word : Split(OptionTable::SectionAlso(section))) {
      EXPECT_THAT(SectionAdvice(word), HasSubstr(section)) << word;
    }
  }
}

}  // namespace
}  // namespace kumo
