// Text tables whose columns line up.
#pragma once

#include <string>
#include <vector>

namespace ergotune::cli {

class Table {
 public:
  /// Numbers line up on the right unless align_left() says otherwise.
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> cells);
  /// For columns that hold text.
  void align_left(std::size_t column);
  /// Two spaces between columns, `indent` in front. Columns that do not fit into `width` characters are left
  /// out from the right, and a last line says which.
  std::string to_string(std::size_t indent, std::size_t width) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

/// Characters a line of the terminal holds; as good as endless where standard output is no terminal.
std::size_t terminal_width();

}  // namespace ergotune::cli
