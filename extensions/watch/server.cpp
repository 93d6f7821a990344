// The sockets: libevent's HTTP server on one thread. Only this file includes libevent.
#include "watch/watch.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "report/report.hpp"
#include "watch/request.hpp"
#include "watch/site.hpp"

namespace ergotune {
namespace {

using namespace serve;

constexpr double kPeriod = 0.25;          // s between events of one stream
constexpr double kPoll = 0.02;            // s between polls for finished answers
constexpr double kKeepAlive = 10;         // s
constexpr double kMostSilence = 5;        // s: an energy window that never closes is abandoned
constexpr int kIdle = 60;                 // s that a connection may be unused
constexpr double kPatience = 30;          // s that a reader may leave its buffer full
constexpr std::size_t kBuffer = 4 << 20;  // bytes that a reader may be behind
constexpr std::size_t kRowsAtOnce = 5000;
constexpr std::size_t kMostStreams = 256, kMostPending = 256;

std::string random_bits(std::size_t bytes) {
  std::array<unsigned char, 32> raw{};
  if (::getrandom(raw.data(), bytes, 0) != static_cast<ssize_t>(bytes)) throw Error("the system has no random numbers");
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", raw[i]);
  return text;
}

/// Gives this process idle priority.
void step_back() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
  (void)::setpriority(PRIO_PROCESS, 0, 19);
}

constexpr timeval kRest{1, 0};

void listen_again(evutil_socket_t, short, void* listener) {
  evconnlistener_enable(static_cast<evconnlistener*>(listener));
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 409:
      return "Conflict";
    case 421:
      return "Misdirected Request";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

/// The text of a header; empty if it is missing.
std::string header(evhttp_request* request, const char* name) {
  const char* value = evhttp_find_header(evhttp_request_get_input_headers(request), name);
  return value ? value : "";
}

Request read(evhttp_request* from) {
  Request request;
  const auto command = evhttp_request_get_command(from);
  request.method = command == EVHTTP_REQ_POST ? "POST" : command == EVHTTP_REQ_GET ? "GET" : "";
  request.target = evhttp_request_get_uri(from);
  request.host = header(from, "Host");
  request.origin = header(from, "Origin");
  request.cookie = header(from, "Cookie");
  request.token = header(from, "X-Ergotune-Token");
  request.last_event_id = header(from, "Last-Event-ID");
  return request;
}

/// Adds the headers that every response carries.
void add_headers(evhttp_request* request, const std::string& type) {
  evkeyvalq* out = evhttp_request_get_output_headers(request);
  evhttp_add_header(out, "Content-Type", type.c_str());
  evhttp_add_header(out, "Cache-Control", "no-store");
  evhttp_add_header(out, "X-Content-Type-Options", "nosniff");
  evhttp_add_header(out, "Referrer-Policy", "no-referrer");
  evhttp_add_header(out, "Cross-Origin-Resource-Policy", "same-origin");
}

void send_answer(evhttp_request* request, const Answer& answer) {
  add_headers(request, answer.type);
  evbuffer* body = evbuffer_new();
  evbuffer_add(body, answer.body.data(), answer.body.size());
  evhttp_send_reply(request, answer.status, reason(answer.status), body);
  evbuffer_free(body);
}

void send_text(evhttp_request* request, int status, const std::string& message) {
  send_answer(request, {status, "text/plain; charset=utf-8", message + "\n"});
}

/// Error callback of a listener: stops accepting for a second. When descriptors or memory are exhausted, the pending
/// connection would otherwise trigger the same error again immediately.
void rest(evconnlistener* listener, void*) {
  static bool reported = false;
  if (!std::exchange(reported, true))
    std::fprintf(stderr, "note: the page accepts no connection for now: %s\n", std::strerror(errno));
  if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, listen_again, listener, &kRest) == 0)
    evconnlistener_disable(listener);
}

}  // namespace

struct WatchServer::State {
  struct Pending {
    evhttp_request* request;
    Route route;
  };
  struct Stream {
    evhttp_request* request;
    std::string session, state;
    std::int64_t after = 0;
    std::uint64_t sample = 0, line = 0;
    double sent_at = 0, state_at = 0, full_since = 0;
  };

  explicit State(const WatchOptions& options)
      : site(options.place, options.session, options.wait), token(random_bits(16)) {}
  ~State() {
    if (http) evhttp_free(http);
    if (timer) event_free(timer);
    if (base) event_base_free(base);
  }

  void listen(int port);
  void handle(evhttp_request* request);
  void take(evhttp_request* request);
  void send_page(evhttp_request* request);
  void open_stream(evhttp_request* request, const Route& route);
  void forget(evhttp_connection* connection);
  void tick();
  void answer_pending();
  void feed_streams();
  bool feed(Stream& stream, double now);
  /// Returns false if the session cannot be read now; others continue, and it is tried again after a second.
  bool attempt(const std::string& session, const std::function<void()>& what);
  std::string events_after(const std::string& session, SessionView& view, std::int64_t& after);
  /// Sends the last events of all sessions and ends their streams; readers have a second to receive them.
  void take_leave();
  void arm(double seconds);

  Site site;
  std::string token;
  event_base* base = nullptr;
  evhttp* http = nullptr;
  event* timer = nullptr;
  int port = 0;
  std::list<Pending> pending;
  std::list<Stream> streams;
  double fed_at = 0, silent_since = 0;
  struct ServerError {
    std::string message;
    double until = 0;
  };
  std::map<std::string, ServerError> failures;  ///< by session
  /// Events made for one reader, by session and row; reused for readers at the same row.
  std::map<std::pair<std::string, std::int64_t>, std::pair<std::string, std::int64_t>> made;
};

void WatchServer::State::listen(int wanted) {
  event_set_log_callback(
      [](int, const char*) {});  // libevent's log would go to the session's terminal, without end if an error persists
  base = event_base_new();
  http = base ? evhttp_new(base) : nullptr;
  if (!http) throw Error("libevent cannot begin");
  evhttp_set_max_headers_size(http, 16 << 10);
  evhttp_set_max_body_size(http, 4 << 10);
  evhttp_set_timeout(http, kIdle);
  evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
  evhttp_set_gencb(
      http, [](evhttp_request* request, void* self) { static_cast<State*>(self)->handle(request); }, this);
  auto* socket = evhttp_bind_socket_with_handle(http, "127.0.0.1", static_cast<ev_uint16_t>(wanted));
  if (!socket)
    throw UserError(fmt::format(
        "port {} of 127.0.0.1 cannot be had: another program listens there; --port 0 takes any that is free", wanted));
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(evhttp_bound_socket_get_fd(socket), reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  timer = evtimer_new(
      base, [](evutil_socket_t, short, void* self) { static_cast<State*>(self)->tick(); }, this);
  evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(socket), rest);
}

void WatchServer::State::arm(double seconds) {
  const timeval delay{static_cast<time_t>(seconds),
                      static_cast<suseconds_t>(1e6 * (seconds - static_cast<time_t>(seconds)))};
  if (!evtimer_pending(timer, nullptr)) evtimer_add(timer, &delay);
}

void WatchServer::State::send_page(evhttp_request* request) {
  const std::string nonce = random_bits(16);
  evkeyvalq* out = evhttp_request_get_output_headers(request);
  evhttp_add_header(
      out, "Set-Cookie",
      fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name(header(request, "Host")), token).c_str());
  // A notebook on this machine may show the page in a frame.
  evhttp_add_header(out, "Content-Security-Policy",
                    fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src "
                                "'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
                                "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* vscode-webview:",
                                nonce)
                        .c_str());
  PageParts parts;
  parts.title = "ergotune";
  parts.data = fmt::format("{{\"saved\":false,\"token\":\"{}\"}}", token);
  parts.nonce = nonce;
  send_answer(request, {200, "text/html; charset=utf-8", page_html(parts)});
}

void WatchServer::State::handle(evhttp_request* from) {
  try {
    take(from);
  } catch (const std::exception& error) {  // libevent is written in C: no exception may pass through it
    send_text(from, 500, error.what());
  }
}

void WatchServer::State::take(evhttp_request* from) {
  const Request request = read(from);
  if (const auto refused = refusal(request, token)) return send_text(from, refused->status, refused->message);
  const Route route = route_of(request);
  if (route.kind == Route::Kind::page) return send_page(from);
  if (route.kind == Route::Kind::events) return open_stream(from, route);
  if (pending.size() >= kMostPending)
    return send_answer(from, {503, "application/json", "{\"error\":\"too much is asked at once\"}"});
  // Answered by the timer, which pauses while a CPU's energy is measured.
  pending.push_back({from, route});
  evhttp_connection* connection = evhttp_request_get_connection(from);
  bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), nullptr, nullptr);  // findings may take long
  evhttp_connection_set_closecb(
      connection, [](evhttp_connection* connection, void* self) { static_cast<State*>(self)->forget(connection); },
      this);
  arm(0);
}

void WatchServer::State::open_stream(evhttp_request* request, const Route& route) {
  if (!site.view(route.session))
    return send_answer(request, {404, "application/json", "{\"error\":\"there is no such session\"}"});
  if (streams.size() >= kMostStreams)
    return send_answer(request, {503, "application/json", "{\"error\":\"too many readers\"}"});
  add_headers(request, "text/event-stream");
  evhttp_connection* connection = evhttp_request_get_connection(request);
  evhttp_connection_set_closecb(
      connection, [](evhttp_connection* gone, void* self) { static_cast<State*>(self)->forget(gone); }, this);
  evhttp_send_reply_start(request, 200, "OK");
  bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), nullptr,
                           nullptr);  // it may be silent for long
  streams.push_back({.request = request, .session = route.session, .state = {}, .after = route.number});
  arm(0);
}

void WatchServer::State::forget(evhttp_connection* connection) {
  // If a reader disconnects before its answer, its request is detached from the connection and must be freed here.
  const auto of = [&](const auto& one) {
    const evhttp_connection* its = evhttp_request_get_connection(one.request);
    if (!its) evhttp_request_free(one.request);
    return !its || its == connection;
  };
  pending.remove_if(of);
  streams.remove_if(of);
}

void WatchServer::State::answer_pending() {
  for (auto it = pending.begin(); it != pending.end();) {
    const std::optional<Answer> answer = site.answer(it->route);
    if (!answer) {
      ++it;
      continue;
    }
    evhttp_request* request = it->request;
    it = pending.erase(it);
    evhttp_connection* connection = evhttp_request_get_connection(request);
    const timeval idle{kIdle, 0};
    bufferevent_set_timeouts(evhttp_connection_get_bufferevent(connection), &idle, &idle);
    evhttp_connection_set_closecb(connection, nullptr, nullptr);
    send_answer(request, *answer);
  }
}

std::string WatchServer::State::events_after(const std::string& session, SessionView& view, std::int64_t& after) {
  if (view.last() <= after) return {};
  const auto [place, fresh] = made.try_emplace({session, after});
  auto& [text, last] = place->second;
  if (fresh) {
    const std::string results = view.results(after, kRowsAtOnce, last);
    text = fmt::format("id: {}\nevent: results\ndata: {}\n\n", last, results);
  }
  after = last;
  return text;
}

/// Returns false if this reader has left its buffer full for too long.
bool WatchServer::State::feed(Stream& stream, double now) {
  evhttp_connection* connection = evhttp_request_get_connection(stream.request);
  evbuffer* waiting = bufferevent_get_output(evhttp_connection_get_bufferevent(connection));
  if (evbuffer_get_length(waiting) > kBuffer) {
    if (stream.full_since == 0) stream.full_since = now;
    return now - stream.full_since < kPatience;
  }
  stream.full_since = 0;
  SessionView* view = site.view(stream.session);
  if (!view) return false;
  std::string text = events_after(stream.session, *view, stream.after);
  if (std::string state = view->state(); state != stream.state || now - stream.state_at > 5) {
    text += "event: state\ndata: " + state + "\n\n";
    stream.state = std::move(state);
    stream.state_at = now;
  }
  if (const std::string samples = view->samples(stream.sample); !samples.empty())
    text += "event: device\ndata: " + samples + "\n\n";
  if (const std::string lines = view->log(stream.line); !lines.empty()) text += "event: log\ndata: " + lines + "\n\n";
  if (text.empty() && now - stream.sent_at > kKeepAlive) text = ":\n\n";
  if (text.empty()) return true;
  stream.sent_at = now;
  evbuffer* chunk = evbuffer_new();
  evbuffer_add(chunk, text.data(), text.size());
  evhttp_send_reply_chunk(stream.request, chunk);
  evbuffer_free(chunk);
  return true;
}

bool WatchServer::State::attempt(const std::string& session, const std::function<void()>& what) {
  try {
    what();
    return true;
  } catch (const std::exception& error) {
    // A store that cannot be read now (locked, damaged, disk unavailable) may be readable later.
    ServerError& failure = failures[session];
    if (failure.message != error.what()) fmt::print(stderr, "note: session {}: {}\n", session, error.what());
    failure = {error.what(), host_seconds() + 1};
    return false;
  }
}

void WatchServer::State::feed_streams() {
  const double now = host_seconds();
  if (streams.empty() || now - fed_at < kPeriod * 0.9) return;
  fed_at = now;
  made.clear();
  std::map<std::string, bool> up_to_date;
  for (const Stream& stream : streams) {
    const auto [place, fresh] = up_to_date.try_emplace(stream.session, false);
    if (fresh && now >= failures[stream.session].until)
      place->second = attempt(stream.session, [&] {
        if (SessionView* view = site.view(stream.session)) view->update(kRowsAtOnce);
      });
  }
  std::vector<evhttp_connection*> late;
  for (Stream& stream : streams) {
    bool keeps_up = true;
    if (up_to_date[stream.session]) attempt(stream.session, [&] { keeps_up = feed(stream, now); });
    if (!keeps_up) late.push_back(evhttp_request_get_connection(stream.request));
  }
  for (evhttp_connection* connection : late) evhttp_connection_free(connection);  // forget() removes it from the list
  made.clear();
}

void WatchServer::State::tick() {
  const double now = host_seconds();
  if (!site.quiet())
    silent_since = 0;
  else if (silent_since == 0)
    silent_since = now;
  const bool silent = silent_since > 0 && now - silent_since < kMostSilence;
  if (!silent) {
    try {
      answer_pending();
      feed_streams();
    } catch (const std::exception& error) {
      fmt::print(stderr, "note: {}\n", error.what());
      fed_at = host_seconds() + 1;
    }
  }
  if (!pending.empty()) return arm(silent ? 0.05 : kPoll);
  if (!streams.empty()) arm(silent ? 0.05 : kPeriod);
}

void WatchServer::State::take_leave() {
  try {
    fed_at = 0;
    feed_streams();
  } catch (const std::exception&) {
    // the store is gone: nothing to add
  }
  constexpr std::string_view kEnd = "event: end\ndata: {}\n\n";
  for (Stream& stream : streams) {
    evbuffer* chunk = evbuffer_new();
    evbuffer_add(chunk, kEnd.data(), kEnd.size());
    evhttp_send_reply_chunk(stream.request, chunk);
    evbuffer_free(chunk);
  }
  const auto drained = [this] {
    return std::ranges::all_of(streams, [](const Stream& stream) {
      return evbuffer_get_length(bufferevent_get_output(
                 evhttp_connection_get_bufferevent(evhttp_request_get_connection(stream.request)))) == 0;
    });
  };
  for (const double end = host_seconds() + 1; host_seconds() < end && !drained();) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    ::usleep(2000);
  }
  std::vector<evhttp_request*> open;
  for (const Stream& stream : streams) open.push_back(stream.request);
  streams.clear();
  for (evhttp_request* request : open) {
    evhttp_connection_set_closecb(evhttp_request_get_connection(request), nullptr, nullptr);
    evhttp_send_reply_end(request);
  }
  event_base_loop(base, EVLOOP_NONBLOCK);
}

WatchServer::WatchServer(const WatchOptions& options) : state_(std::make_unique<State>(options)) {
  state_->listen(options.port);
}

WatchServer::~WatchServer() = default;

std::string WatchServer::url() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", state_->port, state_->token);
}

void WatchServer::serve(const std::atomic<bool>& stop, long parent) {
  std::signal(SIGPIPE, SIG_IGN);
  step_back();
  struct Watch {
    const std::atomic<bool>& stop;
    long parent;
    event_base* base;
  } watch{stop, parent, state_->base};
  event* look = event_new(
      state_->base, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* given) {
        const auto* of = static_cast<Watch*>(given);
        const bool orphan = of->parent > 0 && ::kill(static_cast<pid_t>(of->parent), 0) != 0 && errno == ESRCH;
        if (of->stop.load() || orphan) event_base_loopbreak(of->base);
      },
      &watch);
  const timeval period{0, 500'000};
  event_add(look, &period);
  while (!stop.load()) {
    const int ended = event_base_loop(state_->base, 0);
    if (ended != 0 || event_base_got_break(state_->base)) break;
  }
  event_free(look);
  state_->take_leave();
}

}  // namespace ergotune
