#include "watch/request.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ergotune::serve {
namespace {

using Kind = Route::Kind;

Route get(const std::string& target) { return route_of({.method = "GET", .target = target}); }
Route post(const std::string& target) { return route_of({.method = "POST", .target = target}); }

TEST(Routes, AreThoseOfTheContract) {
  EXPECT_EQ(get("/").kind, Kind::page);
  EXPECT_EQ(get("/?token=abc").kind, Kind::page);
  EXPECT_EQ(get("/api/sessions").kind, Kind::sessions);
  EXPECT_EQ(get("/api/session/3").kind, Kind::session);
  EXPECT_EQ(get("/api/session/results.db%3A3").session, "results.db:3");
  const Route results = get("/api/session/3/results?after=12&limit=99");
  EXPECT_EQ(results.kind, Kind::results);
  EXPECT_EQ(results.number, 12);
  EXPECT_EQ(results.limit, 99u);
  EXPECT_EQ(get("/api/session/3/findings").kind, Kind::findings);
  EXPECT_EQ(get("/api/session/3/configuration/7").number, 7);
  EXPECT_EQ(*get("/api/session/3?objective=max+gflops").objective, "max gflops");
  EXPECT_EQ(get("/api/compare?session=1&session=2").sessions, (std::vector<std::string>{"1", "2"}));
  const Route events = get("/events?session=3&after=5");
  EXPECT_EQ(events.kind, Kind::events);
  EXPECT_EQ(events.session, "3");
  EXPECT_EQ(events.number, 5);
  EXPECT_EQ(route_of({.method = "GET", .target = "/events?session=3&after=5", .last_event_id = "9"}).number, 9)
      << "a browser that comes back says what it has";
  for (const char* ask : {"stop", "pause", "resume", "confirm"}) {
    EXPECT_EQ(post(std::string("/api/session/3/") + ask).ask, ask);
    EXPECT_EQ(get(std::string("/api/session/3/") + ask).kind, Kind::none) << "reading changes nothing";
  }
}

TEST(Routes, WhatIsNoneIsNone) {
  for (const char* target :
       {"", "api", "/api", "/api/session", "/api/sessions/1", "/api/session/3/stop/now", "/page", "//", "http://x/"})
    EXPECT_EQ(get(target).kind, Kind::none) << target;
  EXPECT_EQ(post("/").kind, Kind::none);
  EXPECT_EQ(post("/api/session/3/results").kind, Kind::none);
  EXPECT_EQ(route_of({.method = "DELETE", .target = "/"}).kind, Kind::none);
  EXPECT_EQ(get("/api/session/3/results?after=0&limit=0").number, 0);
  for (const char* target :
       {"results?after=-1", "results?after=x", "results?limit=1.5", "configuration/abc", "configuration/-1",
        "configuration/1.5", "configuration/", "configuration/99999999999999999999"})
    EXPECT_EQ(get(std::string("/api/session/3/") + target).number, -1) << target << " is refused";
  EXPECT_LE(get("/api/session/3/results?limit=99999999999").limit, 20'000u);
}

TEST(Refusals, WhoHasTheTokenAndComesFromHereMay) {
  const std::string token = "0123456789abcdef";
  const Request good{.method = "GET", .target = "/", .host = "127.0.0.1:8080", .token = token};
  EXPECT_FALSE(refusal(good, token));
  const auto with = [&](auto change) {
    Request request = good;
    change(request);
    return refusal(request, token);
  };
  EXPECT_FALSE(with([&](Request& r) { r.token.clear(), r.target = "/?token=" + token; }));
  EXPECT_FALSE(with([&](Request& r) { r.token.clear(), r.cookie = "a=b; ergotune-8080=" + token; }));
  EXPECT_FALSE(with([&](Request& r) { r.token.clear(), r.cookie = "ergotune-1=another; ergotune-8080=" + token; }))
      << "another page's on another port";
  for (const char* host : {"localhost", "localhost:1", "[::1]:80", "127.0.0.1"})
    EXPECT_FALSE(with([&](Request& r) { r.host = host; })) << host;
  for (const char* host : {"", "evil", "127.0.0.1.evil", "localhostx", "evil:127.0.0.1", "[::2]", "[::1].evil.example",
                           "[::1]x:80", "[::1]:80.evil", "localhost:80@evil", "localhost:evil", "127.0.0.1:80:80"})
    EXPECT_EQ(with([&](Request& r) { r.host = host; })->status, 421) << host;
  for (const char* wrong : {"", "0", "0123456789abcdeF", "0123456789abcdef0"}) {
    EXPECT_EQ(with([&](Request& r) { r.token = wrong; })->status, 403) << wrong;
    EXPECT_EQ(with([&](Request& r) { r.token.clear(), r.cookie = std::string("ergotune-8080=") + wrong; })->status, 403)
        << wrong;
  }
  EXPECT_EQ(with([](Request& r) { r.method = "POST"; })->status, 403) << "from nowhere";
  EXPECT_EQ(with([](Request& r) { r.method = "POST", r.origin = "http://evil"; })->status, 403);
  EXPECT_FALSE(with([](Request& r) { r.method = "POST", r.origin = "http://127.0.0.1:8080"; }));
}

TEST(Cookies, HaveANameForEachPort) {
  EXPECT_EQ(cookie_name("127.0.0.1:8080"), "ergotune-8080");
  EXPECT_EQ(cookie_name("[::1]:80"), "ergotune-80");
  for (const char* host : {"localhost", "localhost:", "localhost:80;x", "localhost:123456", "[::1"})
    EXPECT_EQ(cookie_name(host), "ergotune") << host;
}

RC_GTEST_PROP(Requests, WhateverIsWrittenComesBack, (const std::string& text)) {
  std::string coded;
  for (const unsigned char c : text) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    coded += {'%', kDigits[c >> 4], kDigits[c & 15]};
  }
  RC_ASSERT(url_decoded(coded) == text);
  RC_ASSERT(query_of("/x?a=" + coded + "&b=1").at("a") == text);
}

RC_GTEST_PROP(Requests, AreNeverTakenForMoreThanTheyAre,
              (const std::string& target, const std::string& host, const std::string& cookie)) {
  const Request request{
      .method = "GET", .target = target, .host = host, .origin = {}, .cookie = cookie, .token = target};
  (void)route_of(request);
  RC_ASSERT(refusal(request, "a token that nobody guesses").has_value());
}

}  // namespace
}  // namespace ergotune::serve
