// What a store, a worker or somebody's program hands over as a problem's document: read, or refused; what is read is
// written back the same. Inputs that are JSON objects are also tried over a sound document, so that the fuzzer gets
// behind its first members.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"

namespace {

using Json = nlohmann::ordered_json;

const Json& sound() {
  static const Json document = Json::parse(ergotune::serialise(ergotune::parse_problem(
      "name = \"f\"\n[parameters]\nn = [1, 2]\n[kernel]\nfunction = \"f\"\narguments = [{ name = \"y\", type = "
      "\"float32\", count = 16, access = \"write\" }]\n[kernel.source.c]\ntext = \"void f(float* y) { y[0] = n; }\"\n",
      "/nowhere/f.toml")));
  return document;
}

void try_read(const std::string& text) {
  try {
    const std::string document = ergotune::serialise(ergotune::deserialise(text));
    if (ergotune::serialise(ergotune::deserialise(document)) != document) std::abort();
  } catch (const ergotune::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try_read(text);
  const Json part = Json::parse(text, nullptr, false);
  if (!part.is_object()) return 0;
  Json document = sound();
  document.merge_patch(part);
  try_read(document.dump(-1, ' ', true, Json::error_handler_t::replace));
  return 0;
}
