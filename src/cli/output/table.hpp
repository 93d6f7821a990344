// Output that verbs share: styled text, tables with aligned columns, figures (--figure).
#pragma once

#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "cli/verb.hpp"

namespace ergotune::cli {

enum class Style { heading, good, warning, error };

/// The text in bold or in a colour; unchanged if `descriptor` is not a terminal, if NO_COLOR is set (no-color.org), or
/// if TERM is "dumb".
std::string styled(const std::string& text, Style style, int descriptor = 1);

class Table {
 public:
  /// Columns are right-aligned, as for numbers, unless align_left() is called.
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> cells);
  /// Aligns a column to the left, for text.
  void align_left(std::size_t column);
  /// Formats the table with two spaces between columns and `indent` spaces in front. Columns that do not fit into
  /// `width` characters are left out from the right, and a last line names them.
  std::string to_string(std::size_t indent, std::size_t width) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

/// Characters in a line of the terminal; unlimited in effect if standard output is not a terminal.
std::size_t terminal_width();

/// Adds --figure FILE to a verb; `content` describes the figure in the help.
Option add_figure_option(Verb verb, std::string& file, const std::string& content);

/// Writes the charts as one SVG file, one below the other; no effect if `file` is empty.
void write_figure(const std::string& file, const std::vector<Chart>& charts);

}  // namespace ergotune::cli
