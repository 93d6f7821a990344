#include "cli/output/table.hpp"

#include <fmt/color.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/files.hpp"

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

/// No limit for a file or pipe.
constexpr std::size_t kPlainWidth = 100'000;

/// Number of characters on the screen: UTF-8 continuation bytes do not count.
std::size_t shown_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string styled(const std::string& text, Style style, int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool permitted =
      (no_color == nullptr || *no_color == '\0') && terminal != nullptr && std::string_view(terminal) != "dumb";
  return permitted && ::isatty(descriptor) == 1 ? fmt::format(text_style_of(style), "{}", text) : text;
}

Table::Table(std::vector<std::string> header) : header_(std::move(header)), left_(header_.size(), false) {}

void Table::add(std::vector<std::string> cells) {
  cells.resize(header_.size());
  for (std::string& cell : cells)  // a row is one line, even if a name contains line ends
    std::replace_if(
        cell.begin(), cell.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  rows_.push_back(std::move(cells));
}

void Table::align_left(std::size_t column) { left_[column] = true; }

std::string Table::to_string(std::size_t indent, std::size_t width) const {
  std::vector<std::size_t> widths;
  std::size_t total = indent, shown = 0;
  for (std::size_t c = 0; c < header_.size(); ++c) {
    std::size_t widest = shown_width(header_[c]);
    for (const auto& row : rows_) widest = std::max(widest, shown_width(row[c]));
    total += widest + (c == 0 ? 0 : 2);
    if (c > 0 && total > width) break;
    widths.push_back(widest);
    ++shown;
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string built(indent, ' ');
    for (std::size_t c = 0; c < shown; ++c) {
      const std::string padding(widths[c] - shown_width(cells[c]), ' ');
      if (c > 0) built += "  ";
      built += left_[c] ? cells[c] + padding : padding + cells[c];
    }
    built.erase(built.find_last_not_of(' ') + 1);
    text += built + "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  if (shown < header_.size()) {
    std::string names;
    for (std::size_t c = shown; c < header_.size(); ++c) names += (names.empty() ? "" : ", ") + header_[c];
    text += fmt::format("{}(not shown for want of room: {}; --json has them)\n", std::string(indent, ' '), names);
  }
  return text;
}

std::size_t terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20)
    return kPlainWidth;
  return size.ws_col;
}

Option add_figure_option(Verb verb, std::string& file, const std::string& content) {
  return verb.add_option("--figure", file, "Write an SVG figure: " + content);
}

void write_figure(const std::string& file, const std::vector<Chart>& charts) {
  if (!file.empty()) write_named_file(file, to_svg(charts));
}

}  // namespace ergotune::cli
