// What is asked of the page's server, and whether who asks may. Pure: no socket, no store.
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
  /// configuration: its row; results and events: after which row of the store.
  std::int64_t number = 0;  ///< -1: what was given is none
  std::size_t limit = 0;
  std::string ask;                    ///< control: stop, pause, resume, confirm
  std::vector<std::string> sessions;  ///< compare
  std::optional<std::string> objective;
};

/// Kind none for what there is not; whatever the bytes are, nothing else comes of them. Numbers that are none count as
/// 0.
Route route_of(const Request& request);

/// %41 and + undone; what is no such code stays as it is.
std::string url_decoded(std::string_view text);
/// Parameters of a query, the last of a name counts; "session" may come again, and is in `sessions`.
std::map<std::string, std::string> query_of(std::string_view target, std::vector<std::string>* sessions = nullptr);

struct Refusal {
  int status = 403;
  std::string words;
};
/// Why this request is not answered: a name of this machine that is not its own (a page from elsewhere whose name was
/// pointed here), no token, or a change requested from another origin.
std::optional<Refusal> refusal(const Request& request, std::string_view token);

/// The name of the cookie that holds the token, by the Host that a browser sees ("ergotune-8080"): browsers share
/// cookies between all ports of a host, and several pages may be open in one.
std::string cookie_name(std::string_view host);

}  // namespace ergotune::serve
