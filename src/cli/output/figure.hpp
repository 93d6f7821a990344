// The option --figure, shared by all verbs that draw.
#pragma once

#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "cli/verb.hpp"

namespace ergotune::cli {

/// Adds --figure FILE to a verb; `content` describes the figure in the help.
Option add_figure_option(Verb verb, std::string& file, const std::string& content);

/// Writes the charts as one SVG file, one below the other; no effect if `file` is empty.
void write_figure(const std::string& file, const std::vector<Chart>& charts);

}  // namespace ergotune::cli
