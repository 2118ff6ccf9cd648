#include "common/base/status.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gtest/gtest.h>

namespace kumo {
namespace {

TEST(Status, IsOkUnlessMadeOtherwise) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(OkStatus().ok());
  EXPECT_EQ(OkStatus().message(), "");
}

TEST(Status, EachMakerMakesItsCode) {
  EXPECT_EQ(InvalidArgument("x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FailedPrecondition("x").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(NotFound("x").code(), StatusCode::kNotFound);
  EXPECT_EQ(Unavailable("x").code(), StatusCode::kUnavailable);
  EXPECT_EQ(Aborted("x").code(), StatusCode::kAborted);
  EXPECT_EQ(DataLoss("x").code(), StatusCode::kDataLoss);
  EXPECT_EQ(ResourceExhausted("x").code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Internal("x").code(), StatusCode::kInternal);
  EXPECT_EQ(OutOfRange("x").code(), StatusCode::kOutOfRange);
  EXPECT_FALSE(Internal("x").ok());
}

TEST(Status, OfAnExceptionSaysWhetherMemoryOrThreadsAreShort) {
  const auto status_of = [](const auto& exception) {
    try {
      throw exception;
    } catch (...) {
      return CurrentException();
    }
  };
  EXPECT_EQ(status_of(std::bad_alloc()).code(), StatusCode::kResourceExhausted);
  const auto again = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(status_of(std::system_error(again)).code(), StatusCode::kResourceExhausted);
  const Status other = status_of(std::out_of_range("the index"));
  EXPECT_EQ(other.code(), StatusCode::kInternal);
  EXPECT_EQ(other.message(), "the index");
  EXPECT_EQ(status_of(7).code(), StatusCode::kInternal);
}

TEST(Status, ContextGoesInFrontAndLeavesOkAlone) {
  const Status status = NotFound("no such file").WithContext("data").WithContext("worker 3");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "worker 3: data: no such file");
  EXPECT_TRUE(OkStatus().WithContext("data").ok());
  EXPECT_EQ(OkStatus().WithContext("data").message(), "");
}

Result<std::unique_ptr<int>> Make(int value) {
  if (value < 0) return InvalidArgument("negative");
  return std::make_unique<int>(value);
}

Status Sum(int a, int b, int* sum) {
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<int> x, Make(a));
  KUMO_ASSIGN_OR_RETURN(const std::unique_ptr<int> y, Make(b));
  KUMO_RETURN_IF_ERROR(Make(0).status());
  *sum = *x + *y;
  return OkStatus();
}

TEST(Result, HoldsAValueThatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = Make(3);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 3);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 3);
}

TEST(Result, MacrosTakeTheValueOrReturnTheFirstError) {
  int sum = -1;
  EXPECT_TRUE(Sum(2, 3, &sum).ok());
  EXPECT_EQ(sum, 5);
  sum = -1;
  EXPECT_EQ(Sum(2, -3, &sum).message(), "negative");
  EXPECT_EQ(Sum(-2, 3, &sum).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sum, -1);
}

TEST(ResultDeathTest, TheValueOfAnErrorIsOurBug) {
  EXPECT_DEATH((void)Make(-1).value(), "negative");
  EXPECT_DEATH((void)Result<int>(OkStatus()), "has no value");
}

}  // namespace
}  // namespace kumo
