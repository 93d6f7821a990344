#include "watch/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ergotune::serve {
namespace {

/// Largest number of rows in one answer.
constexpr std::size_t kMostRows = 20'000;
constexpr std::size_t kMostSessions = 16;

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// nullopt if the text is not an integer of 0 or more.
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// Compares in a time that depends on the lengths only, not on the contents.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos;
}

/// The host of "NAME" or "NAME:PORT"; any other text is returned as it is and matches no accepted host.
std::string_view host_name(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  const std::size_t colon = bracket == host.npos ? host.npos : host.find(':', bracket);
  if (colon == host.npos) return host;
  const bool named = is_port(host.substr(colon + 1)) && (bracket == 0 || colon == bracket + 1);
  return named ? host.substr(0, colon) : host;
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty() && parts.size() < 8) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.push_back(url_decoded(path.substr(0, end)));
    path.remove_prefix(end);
  }
  return parts;
}

Route session_route(const std::vector<std::string>& parts, bool post, const std::map<std::string, std::string>& query) {
  Route route;
  route.session = parts[2];
  const auto value = [&](const char* name) {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  };
  if (const auto objective = value("objective"); !objective.empty()) route.objective = objective;
  using Kind = Route::Kind;
  const std::string what = parts.size() > 3 ? parts[3] : "";
  constexpr std::array<std::string_view, 4> kRequested{"stop", "pause", "resume", "confirm"};
  if (post) {
    if (parts.size() == 4 && std::ranges::find(kRequested, what) != kRequested.end()) {
      route.kind = Kind::control;
      route.ask = what;
    }
  } else if (parts.size() == 3) {
    route.kind = Kind::session;
  } else if (parts.size() == 4 && what == "results") {
    route.kind = Kind::results;
    const auto number = [&](const char* name) {
      return value(name).empty() ? 0 : whole_number(value(name)).value_or(-1);
    };
    const std::int64_t limit = number("limit");
    route.number = limit < 0 ? -1 : number("after");
    route.limit = limit > 0 ? static_cast<std::size_t>(std::min<std::int64_t>(limit, kMostRows)) : kMostRows;
  } else if (parts.size() == 4 && what == "findings") {
    route.kind = Kind::findings;
  } else if (parts.size() == 5 && what == "configuration") {
    route.kind = Kind::configuration;
    route.number = whole_number(parts[4]).value_or(-1);
  }
  return route;
}

}  // namespace

std::string url_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      result += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

std::map<std::string, std::string> query_of(std::string_view target, std::vector<std::string>* sessions) {
  std::map<std::string, std::string> query;
  const std::size_t mark = target.find('?');
  if (mark == target.npos) return query;
  target.remove_prefix(mark + 1);
  target = target.substr(0, target.find('#'));
  while (!target.empty()) {
    const std::size_t end = std::min(target.find('&'), target.size());
    const std::string_view one = target.substr(0, end);
    target.remove_prefix(std::min(end + 1, target.size()));
    const std::size_t equal = std::min(one.find('='), one.size());
    const std::string name = url_decoded(one.substr(0, equal));
    std::string value = url_decoded(one.substr(std::min(equal + 1, one.size())));
    if (sessions && name == "session" && sessions->size() < kMostSessions) sessions->push_back(value);
    query[name] = std::move(value);
  }
  return query;
}

Route route_of(const Request& request) {
  Route route;
  std::vector<std::string> sessions;
  const auto query = query_of(request.target, &sessions);
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find_first_of("?#"));
  const bool post = request.method == "POST";
  if (!path.starts_with('/') || (!post && request.method != "GET")) return route;
  const std::vector<std::string> parts = parts_of(path);
  using Kind = Route::Kind;
  if (parts.size() >= 3 && parts[0] == "api" && parts[1] == "session") return session_route(parts, post, query);
  if (post) return route;
  if (path == "/") {
    route.kind = Kind::page;
  } else if (path == "/api/sessions") {
    route.kind = Kind::sessions;
  } else if (path == "/api/compare") {
    route.kind = Kind::compare;
    route.sessions = std::move(sessions);
    if (const auto found = query.find("objective"); found != query.end() && !found->second.empty())
      route.objective = found->second;
  } else if (path == "/events") {
    route.kind = Kind::events;
    route.session = sessions.empty() ? "" : sessions.back();
    const auto after = query.find("after");
    if (after != query.end()) route.number = whole_number(after->second).value_or(0);
    // a browser that reconnects sends the last event that it has received
    if (!request.last_event_id.empty())
      route.number = std::max(route.number, whole_number(request.last_event_id).value_or(0));
  }
  return route;
}

std::string cookie_name(std::string_view host) {
  const std::string_view rest = host.substr(host_name(host).size());
  const bool named = rest.starts_with(':') && is_port(rest.substr(1));
  return named ? "ergotune-" + std::string(rest.substr(1)) : "ergotune";
}

std::optional<Refusal> refusal(const Request& request, std::string_view token) {
  const std::string_view name = host_name(request.host);
  if (name != "127.0.0.1" && name != "localhost" && name != "[::1]")
    return Refusal{421, "this server answers to localhost and 127.0.0.1 only"};
  bool known = same(request.token, token);
  if (!known) {
    const auto query = query_of(request.target);
    const auto found = query.find("token");
    known = found != query.end() && same(found->second, token);
  }
  const std::string cookie = cookie_name(request.host);
  for (std::string_view rest = request.cookie; !known && !rest.empty();) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    const std::size_t equal = one.find('=');
    if (equal != one.npos && one.substr(0, equal) == cookie) known = same(one.substr(equal + 1), token);
  }
  if (!known) return Refusal{403, "open the link that ergotune watch has printed: its token is missing or another's"};
  if (request.method == "POST" && request.origin != "http://" + request.host)
    return Refusal{403, "a change may be asked for by this server's own page only"};
  return std::nullopt;
}

}  // namespace ergotune::serve
