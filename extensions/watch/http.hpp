// Converts requests of libevent, and sends answers through it.
#pragma once

#include <string>

#include "watch/request.hpp"
#include "watch/site.hpp"

struct evconnlistener;
struct evhttp_request;

namespace ergotune::serve {

/// The text of a header; empty if it is missing.
std::string header(evhttp_request* request, const char* name);
Request read(evhttp_request* from);
/// Adds the headers that every response carries.
void add_headers(evhttp_request* request, const std::string& type);
void send_answer(evhttp_request* request, const Answer& answer);
/// Sends a plain-text answer.
void send_text(evhttp_request* request, int status, const std::string& message);
/// Error callback of a listener: stops accepting for a second. When descriptors or memory are exhausted, the pending
/// connection would otherwise trigger the same error again immediately.
void rest(evconnlistener* listener, void*);

}  // namespace ergotune::serve
