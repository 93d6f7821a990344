// The option --figure of all verbs that draw.
#pragma once

#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "cli/verb.hpp"

namespace ergotune::cli {

/// Adds --figure FILE to a verb; `content` says what it draws.
Option add_figure_option(Verb verb, std::string& file, const std::string& content);

/// Writes the charts one below the other as SVG where the user named a file.
void write_figure(const std::string& file, const std::vector<Chart>& charts);

}  // namespace ergotune::cli
