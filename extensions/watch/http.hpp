// What libevent says of a request, and answers by it.
#pragma once

#include <string>

#include "watch/request.hpp"
#include "watch/site.hpp"

struct evconnlistener;
struct evhttp_request;

namespace ergotune::serve {

/// A header's text; empty where it is not there.
std::string header(evhttp_request* request, const char* name);
Request read(evhttp_request* from);
/// Those of every answer.
void add_headers(evhttp_request* request, const std::string& type);
void send_answer(evhttp_request* request, const Answer& answer);
/// As plain text.
void send_text(evhttp_request* request, int status, const std::string& message);
/// A listener's error callback: it listens again after a second. No descriptor or memory is there for who knocks; the
/// knock stays, and would be heard again at once and for ever.
void rest(evconnlistener* listener, void*);

}  // namespace ergotune::serve
