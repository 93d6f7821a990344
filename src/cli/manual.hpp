// Generates man pages and shell completion from the options that the parser defines.
#pragma once

#include <filesystem>

namespace CLI {
class App;
}

namespace ergotune::cli {

/// Writes man/man1, bash-completion, zsh and fish files below `folder`, the share/ folder of a prefix. Throws Error if
/// a file cannot be written.
void write_manual(const CLI::App& app, const std::filesystem::path& folder);

}  // namespace ergotune::cli
