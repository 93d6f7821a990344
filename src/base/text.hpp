// Small operations on text: lists with separators, white space, words for a shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// The parts between separators, one more than there are separators; of an empty text none.
std::vector<std::string> split(std::string_view text, char separator = ',');
/// Without white space at its ends.
std::string_view trimmed(std::string_view text);

/// The word as a POSIX shell takes it: in single quotes where that is needed.
std::string shell_word(const std::string& word);
/// A line that a shell takes as these words.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace ergotune
