// Man pages and shell completion, written from the options that the parser knows.
#pragma once

#include <filesystem>

namespace CLI {
class App;
}

namespace ergotune::cli {

/// Writes man/man1, bash-completion, zsh and fish files below `folder`, which is a prefix's share/.
/// Throws Error when a file cannot be written.
void write_manual(const CLI::App& app, const std::filesystem::path& folder);

}  // namespace ergotune::cli
