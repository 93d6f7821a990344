#include "cli/output/style.hpp"

#include <fmt/color.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ergotune::cli {
namespace {

fmt::text_style text_style_of(Style style) {
  switch (style) {
    case Style::heading:
      return fmt::emphasis::bold;
    case Style::good:
      return fmt::fg(fmt::terminal_color::green);
    case Style::warning:
      return fmt::fg(fmt::terminal_color::yellow);
    case Style::error:
      return fmt::emphasis::bold | fmt::fg(fmt::terminal_color::red);
  }
  return {};
}

}  // namespace

std::string styled(const std::string& text, Style style, int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool permitted =
      (no_color == nullptr || *no_color == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb";
  return permitted && ::isatty(descriptor) == 1 ? fmt::format(text_style_of(style), "{}", text) : text;
}

}  // namespace ergotune::cli
