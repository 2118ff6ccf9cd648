#include "common/settings/key_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "common/settings/option_words.h"

namespace kumo {
namespace {

using ::testing::HasSubstr;

std::string Advice(const std::string& key) { return KeyAdvice(key, OptionTable()); }

std::vector<std::string> Split(std::string_view words) {
  std::istringstream stream{std::string(words)};
  std::vector<std::string> split;
  for (std::string word; stream >> word;) split.push_back(word);
  return split;
}

TEST(KeyAdvice, AKeyWithoutItsSectionIsGivenAllThatItMayBe) {
  EXPECT_EQ(Advice("epochs"), "; did you mean job.epochs?");
  EXPECT_EQ(Advice("momentum"), "; did you mean block.momentum or optimiser.momentum?");
  EXPECT_EQ(Advice("learning_rate"),
            "; did you mean block.learning_rate or schedule.learning_rate?");
  EXPECT_EQ(Advice("minibatch"), "; did you mean sync.minibatch or evaluation.minibatch?");
  EXPECT_EQ(Advice("device"), "; did you mean network.device?");
  EXPECT_EQ(Advice("workers"), "; did you mean cluster.workers?");
}

TEST(KeyAdvice, AWordOfTheFieldIsGivenItsKey) {
  EXPECT_EQ(Advice("lr"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(Advice("optimiser.lr"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(Advice("batch_size"), "; did you mean sync.minibatch or evaluation.minibatch?");
  EXPECT_EQ(Advice("sync.batch"), "; did you mean sync.minibatch?");
  EXPECT_EQ(Advice("optimizer"), "; did you mean optimiser.type?");
  EXPECT_EQ(Advice("gpu"), "; did you mean network.device?");
  EXPECT_EQ(Advice("BatchSize"), Advice("batch_size"));
}

TEST(KeyAdvice, OfTwoKeysThatOfTheSectionIsMeant) {
  EXPECT_EQ(Advice("optimizer.momentum"), "; did you mean optimiser.momentum?");
  EXPECT_EQ(Advice("scheduler.learning_rate"), "; did you mean schedule.learning_rate?");
  EXPECT_EQ(Advice("snyc.minibatch"), "; did you mean sync.minibatch?");
  EXPECT_EQ(Advice("data.partitions"), "; did you mean sync.partitions?");
}

TEST(KeyAdvice, AMistypedKeyIsGivenTheNearest) {
  EXPECT_EQ(Advice("sync.minibach"), "; did you mean sync.minibatch?");
  EXPECT_EQ(Advice("lerning_rate"), Advice("learning_rate"));
  EXPECT_EQ(Advice("zzzzzzzzzzzz"), "");
  EXPECT_EQ(Advice(""), "");
  EXPECT_EQ(Advice("."), "");
  EXPECT_EQ(Advice(std::string(100000, 'a') + "." + std::string(100000, 'a')), "");
}

TEST(KeyAdvice, AnIncludeInASectionIsSentToTheTopOfTheFile) {
  EXPECT_THAT(Advice("sync.include"), HasSubstr("before the first [section]"));
}

TEST(KeyAdvice, EveryKeyIsFoundByItsNameAloneAndByEveryWordForIt) {
  const OptionTable table;
  for (const Option& option : table.options()) {
    EXPECT_THAT(Advice(option.name()), HasSubstr(option.key));
    for (const std::string& word : Split(option.also)) {
      EXPECT_THAT(Advice(word), HasSubstr(option.key)) << word;
      EXPECT_THAT(Advice(option.section() + "." + word), HasSubstr(option.key)) << word;
      EXPECT_EQ(table.Find(option.section() + "." + word), nullptr) << word << " is a key itself";
    }
  }
}

TEST(SectionAdvice, FindsSectionsBySpellingAndByEveryWordForThem) {
  const OptionTable table;
  EXPECT_EQ(SectionAdvice("snyc", table), "; did you mean sync?");
  EXPECT_EQ(SectionAdvice("Model", table), "; did you mean network?");
  EXPECT_EQ(SectionAdvice("nonsense", table), "");
  for (const std::string& section : table.sections()) {
    for (const std::string& word : Split(WordsFor(section))) {
      EXPECT_THAT(SectionAdvice(word, table), HasSubstr(section)) << word;
    }
  }
}

TEST(OptionWords, AreOfKeysAndSectionsThatThereAre) {
  const OptionTable table;
  for (const OptionWords& words : AllOptionWords()) {
    const bool section = std::find(table.sections().begin(), table.sections().end(), words.name) !=
                         table.sections().end();
    EXPECT_TRUE(section || table.Find(words.name) != nullptr) << words.name;
  }
}

}  // namespace
}  // namespace kumo
