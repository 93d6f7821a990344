// String utilities: lists with separators, white space, quoting for a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// Returns the parts between separators, one more than there are separators; none for an empty text.
std::vector<std::string> split(std::string_view text, char separator = ',');
/// Returns the text without leading and trailing white space.
std::string_view trimmed(std::string_view text);

/// Quotes a word for a POSIX shell if necessary.
std::string shell_word(const std::string& word);
/// Returns a command line that a shell splits into these words.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace ergotune
