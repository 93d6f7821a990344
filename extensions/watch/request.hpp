// Parses requests to the page's server and checks their permission. Pure: no sockets, no store.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune::serve {

struct Request {
  std::string method;                                      ///< "GET", "POST"
  std::string target;                                      ///< "/api/session/3/results?after=12"
  std::string host, origin, cookie, token, last_event_id;  ///< headers; token: X-Ergotune-Token
};

struct Route {
  enum class Kind { none, page, sessions, session, results, findings, configuration, compare, control, events };
  Kind kind = Kind::none;
  std::string session;
  /// configuration: its row; results and events: the row of the store after which to begin.
  std::int64_t number = 0;  ///< -1: not a valid number
  std::size_t limit = 0;
  std::string ask;                    ///< control: stop, pause, resume, confirm
  std::vector<std::string> sessions;  ///< compare
  std::optional<std::string> objective;
};

/// Parses a request; kind `none` for an unknown path or invalid input. Invalid numbers count as 0.
Route route_of(const Request& request);

/// Decodes %41 and +; invalid codes are not changed.
std::string url_decoded(std::string_view text);
/// Parameters of a query; of a repeated name the last counts, except that all values of "session" are added to
/// `sessions`.
std::map<std::string, std::string> query_of(std::string_view target, std::vector<std::string>* sessions = nullptr);

struct Refusal {
  int status = 403;
  std::string message;
};
/// Why a request is rejected: a Host header that is not this machine's (DNS rebinding), no token, or a change requested
/// from another origin. nullopt if it is accepted.
std::optional<Refusal> refusal(const Request& request, std::string_view token);

/// The name of the cookie that holds the token, which contains the port of the Host header ("ergotune-8080"): browsers
/// share cookies among all ports of a host, and several pages may be open.
std::string cookie_name(std::string_view host);

}  // namespace ergotune::serve
