// Words for a shell's command line.
#pragma once

#include <string>
#include <vector>

namespace ergotune {

/// The word as a POSIX shell takes it: in single quotes where that is needed.
std::string shell_word(const std::string& word);
/// A line that a shell takes as these words.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace ergotune
