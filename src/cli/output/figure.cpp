#include "cli/output/figure.hpp"

#include "base/files.hpp"

namespace ergotune::cli {

Option add_figure_option(Verb verb, std::string& file, const std::string& content) {
  return verb.add_option("--figure", file, "Write an SVG figure: " + content);
}

void write_figure(const std::string& file, const std::vector<Chart>& charts) {
  if (!file.empty()) write_named_file(file, to_svg(charts));
}

}  // namespace ergotune::cli
