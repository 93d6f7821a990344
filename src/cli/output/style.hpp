// Emphasis of printed text on terminals.
#pragma once

#include <string>

namespace ergotune::cli {

enum class Style { heading, good, warning, error };

/// The text in bold or in a colour; unchanged if `descriptor` is not a terminal, if NO_COLOR is set (no-color.org), or
/// if TERM is "dumb".
std::string styled(const std::string& text, Style style, int descriptor = 1);

}  // namespace ergotune::cli
