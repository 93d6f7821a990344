#include "watch/http.hpp"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ergotune::serve {
namespace {

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

}  // namespace

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

void rest(evconnlistener* listener, void*) {
  static bool said = false;
  if (!std::exchange(said, true))
    std::fprintf(stderr, "note: the page accepts no connection for now: %s\n", std::strerror(errno));
  if (event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, listen_again, listener, &kRest) == 0)
    evconnlistener_disable(listener);
}

}  // namespace ergotune::serve
