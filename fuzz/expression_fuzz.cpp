// Any text either parses or is refused with a UserError; what parses prints, parses back to the same form,
// and evaluates to a value or a UserError.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ergotune/space.hpp"
#include "space/expression/expression_tree.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Expression expression = Expression::parse(text);
    const std::string printed = expression.to_string();
    if (!same_form(expression.root(), Expression::parse(printed).root())) std::abort();
    Constants names;
    std::int64_t next = 1;
    for (const auto& name : expression.names()) names[name] = Value(next++);
    expression.evaluate(names);
  } catch (const UserError&) {
  }
  try {
    Template::parse(text);
  } catch (const UserError&) {
  }
  return 0;
}
