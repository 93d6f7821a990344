// Text tables with aligned columns.
#pragma once

#include <string>
#include <vector>

namespace ergotune::cli {

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

}  // namespace ergotune::cli
