// What the page's server is asked: any bytes are a route or none, and nobody without the token comes in.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "watch/request.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune::serve;
  // Parts of a request, apart by zero bytes.
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::string parts[6];
  std::size_t at = 0;
  for (std::string& part : parts) {
    const std::size_t end = std::min(bytes.find('\0', at), bytes.size());
    part = bytes.substr(std::min(at, bytes.size()), end - std::min(at, bytes.size()));
    at = end + 1;
  }
  Request request{parts[0].empty() ? "GET" : "POST", parts[1], parts[2], parts[3], parts[4], parts[5], parts[0]};
  const Route route = route_of(request);
  if (route.kind == Route::Kind::control && request.method != "POST") std::abort();
  if (route.number < -1 || route.limit > 20'000 || route.sessions.size() > 16) std::abort();
  const std::string token = "5f8e3a1b0c9d7e6f5a4b3c2d1e0f9a8b";
  if (bytes.find(token) == bytes.npos && url_decoded(bytes).find(token) == std::string::npos &&
      !refusal(request, token))
    std::abort();
  request.token = token;
  request.host = "localhost:1";
  request.method = "GET";
  if (refusal(request, token)) std::abort();
  return 0;
}
