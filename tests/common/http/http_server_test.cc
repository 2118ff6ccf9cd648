#include "common/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/common/http/http_client.h"

namespace kumo {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    auto server = HttpServer::Start("127.0.0.1:0", {}, &clock_, [](std::string_view path) {
      HttpResponse response;
      if (path != "/there") response.code = 404;
      response.body = std::make_shared<const std::string>("body of " + std::string(path) + "\n");
      return response;
    });
    CHECK(server.ok()) << server.status().message();
    server_ = std::move(server).value();
  }
  std::string Get(const std::string& path) { return HttpClient::Get(server_->address(), path); }
  std::string Answer(const std::string& request) {
    HttpClient client(server_->address());
    client.Send(request);
    return client.Receive();
  }

  SteadyClock clock_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  const std::string answer = Get("/there");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'self'"));
  EXPECT_EQ(HttpClient::Body(answer), "body of /there\n");
  EXPECT_THAT(Get("/elsewhere"), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(HttpClient::Body(Answer("HEAD /there HTTP/1.1\r\nHost: k\r\n\r\n")), "");
}

TEST_F(HttpServerTest, OnlyReads) {
  for (const char* method : {"POST", "PUT", "DELETE", "TRACE", "NONSENSE"}) {
    EXPECT_THAT(Answer(std::string(method) + " /there HTTP/1.1\r\nHost: k\r\n\r\n"),
                StartsWith("HTTP/1.1 405"))
        << method;
  }
}

TEST_F(HttpServerTest, ASecondRequestBehindTheFirstIsNotAnswered) {
  const std::string answer =
      Answer("GET /there HTTP/1.1\r\nHost: k\r\n\r\nGET /second HTTP/1.1\r\nHost: k\r\n\r\n");
  EXPECT_THAT(answer, testing::Not(HasSubstr("/second")));
}

TEST_F(HttpServerTest, EndlessHeadersAreRefused) {
  const std::string answer =
      Answer("GET /there HTTP/1.1\r\nHost: k\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(answer, testing::Not(HasSubstr("200 OK")));
  EXPECT_THAT(Get("/there"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, BytesThatAreNoHttpHarmNobody) {
  HttpClient client(server_->address());
  client.Send(std::string("\0\xff\x16\x03\x01\r\n\r\n", 9));
  EXPECT_THAT(Get("/there"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ThousandWhoSayNothingKeepNobodyOut) {
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 900; ++i) {
    silent.push_back(std::make_unique<HttpClient>(server_->address()));
    silent.back()->Send("GET /there HT");
  }
  EXPECT_THAT(Get("/there"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnAddressThatIsTakenOrNoneIsAnError) {
  const auto handler = [](std::string_view) { return HttpResponse(); };
  const auto taken = HttpServer::Start(server_->address(), {}, &clock_, handler);
  EXPECT_EQ(taken.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(taken.status().message(), HasSubstr(server_->address()));
  for (const char* address : {"nonsense", "tcp://127.0.0.1:1", "127.0.0.1:99999", ":1"}) {
    const auto bad = HttpServer::Start(address, {}, &clock_, handler);
    EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument) << address;
  }
}

class HandClock : public Clock {
 public:
  TimeUs NowUs() const override { return now; }
  std::atomic<TimeUs> now = 0;
};

TEST(HttpServer, WhoSendsTooSlowlyIsEnded) {
  HandClock clock;
  auto server = HttpServer::Start("127.0.0.1:0", {}, &clock, [](std::string_view) {
    HttpResponse response;
    response.body = std::make_shared<const std::string>("x");
    return response;
  });
  ASSERT_TRUE(server.ok());
  HttpClient slow((*server)->address());
  slow.Send("GET /the");
  EXPECT_THAT(HttpClient::Get((*server)->address(), "/"), StartsWith("HTTP/1.1 200"));
  clock.now = HttpLimits().connection;
  slow.Send("re");
  EXPECT_EQ(slow.Receive(), "");
}

}  // namespace
}  // namespace kumo
