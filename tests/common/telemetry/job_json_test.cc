#include "common/telemetry/job_json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/common/job/loss_and_accuracy.h"

namespace kumo {
namespace {

// Read by a library's reader.
google::protobuf::Struct Parsed(const wire::JobStatus& status) {
  google::protobuf::Struct parsed;
  const std::string json = JobJson(status);
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok()) << json;
  return parsed;
}

TEST(JobJson, NumbersAreNumbersAndNamesThoseOfTheCurves) {
  wire::JobStatus status;
  status.set_round(812);
  status.set_rounds(int64_t{1} << 40);
  test::AddFigure("loss", 0.25, &status);
  test::AddFigure("accuracy", 0.5, &status);
  test::AddValidationFigure("accuracy", 0.75, &status);
  status.set_learning_rate(0.05);
  status.set_elapsed_seconds(12.5);
  status.set_last_checkpoint(700);
  status.add_servers()->mutable_report()->set_shard_bytes(uint64_t{3} << 40);
  auto fields = Parsed(status).fields();
  const auto number = [&](const char* name) {
    EXPECT_TRUE(fields.contains(name) && fields.at(name).has_number_value()) << name;
    return fields[name].number_value();
  };
  EXPECT_EQ(number("round"), 812);
  EXPECT_EQ(number("rounds"), static_cast<double>(int64_t{1} << 40));
  EXPECT_EQ(number("main/loss"), 0.25);
  EXPECT_EQ(number("main/accuracy"), 0.5);
  EXPECT_EQ(number("validation/main/accuracy"), 0.75);
  EXPECT_EQ(number("lr"), 0.05);
  EXPECT_EQ(number("elapsed_time"), 12.5);
  EXPECT_EQ(number("last_checkpoint"), 700);
  const auto& server = fields["servers"].list_value().values(0).struct_value().fields();
  EXPECT_EQ(server.at("shard_bytes").number_value(), static_cast<double>(uint64_t{3} << 40));
  EXPECT_THAT(JobJson(status), testing::HasSubstr("\"shard_bytes\":3298534883328,"));
}

TEST(JobJson, WhatIsNotKnownIsNotThere) {
  wire::JobStatus status;
  status.set_last_checkpoint(-1);
  status.add_workers();
  auto fields = Parsed(status).fields();
  for (const char* name :
       {"rounds", "epoch", "samples", "main/loss", "main/accuracy", "validation/main/loss", "lr",
        "samples_per_second", "eta", "last_checkpoint", "waits_for"}) {
    EXPECT_FALSE(fields.contains(name)) << name;
  }
  const auto& worker = fields["workers"].list_value().values(0).struct_value().fields();
  for (const char* name : {"compute_ms", "wait_ms", "network_ms", "samples_per_second", "silent"}) {
    EXPECT_FALSE(worker.contains(name)) << name;
  }
  status.mutable_workers(0)->mutable_report()->set_wait_ms(0);
  fields = Parsed(status).fields();
  EXPECT_TRUE(fields["workers"].list_value().values(0).struct_value().fields().contains("wait_ms"));
}

TEST(JobJson, WhoIsSilentIsNotSaidToWork) {
  wire::JobStatus status;
  wire::JobStatus::Worker* worker = status.add_workers();
  worker->mutable_report()->set_state("trains partition 1");
  worker->set_silent_seconds(4);
  const auto fields = Parsed(status).fields();
  const auto& shown = fields.at("workers").list_value().values(0).struct_value().fields();
  EXPECT_EQ(shown.at("silent").number_value(), 4);
  EXPECT_FALSE(shown.contains("state"));
}

TEST(JobJson, WhateverAPeerSendsItIsJson) {
  wire::JobStatus status;
  status.set_job_name("\x1b[2J\"evil\n\\");
  status.set_eta_seconds(std::numeric_limits<double>::quiet_NaN());
  test::AddFigure("loss", std::numeric_limits<double>::infinity(), &status);
  test::AddFigure("loss", 7, &status);
  test::AddFigure("\"\n\xff", 1, &status);
  const auto fields = Parsed(status).fields();
  EXPECT_EQ(fields.at("job_name").string_value(), "\x1b[2J\"evil\n\\");
  EXPECT_TRUE(fields.at("eta").has_null_value());
  EXPECT_TRUE(fields.at("main/loss").has_null_value()) << "of two of a name the first counts";
}

}  // namespace
}  // namespace kumo
