#include "program/program_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ergotune {
namespace {

/// The standard library's regex matcher recurses once per character of a line.
constexpr std::size_t kLongestLine = 1024;
constexpr std::size_t kOutputTail = 1500;

/// Calls `each` for the lines from the last one backwards until it returns true; returns whether it did.
template <class F>
bool find_last_line(std::string_view text, F&& each) {
  while (!text.empty()) {
    if (text.back() == '\n') text.remove_suffix(1);
    const std::size_t begin = text.rfind('\n') + 1;  // npos + 1 is 0
    std::string_view line = text.substr(begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (each(line.substr(0, kLongestLine))) return true;
    text = text.substr(0, begin);
  }
  return false;
}

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

/// The text of the number in the last match of a line; with two groups, of each name that the first one matches.
std::map<std::string, std::string> last_matches(std::string_view line, const std::string& quantity,
                                                const std::regex& regex) {
  std::map<std::string, std::string> found;
  for (std::cregex_iterator match(line.data(), line.data() + line.size(), regex), end; match != end; ++match)
    found[match->size() > 2 ? quantity + '.' + (*match)[1].str() : quantity] = match->str(match->size() - 1);
  return found;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != line.npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool same_word(std::string_view actual, std::string_view expected, double absolute, double relative) {
  if (actual == expected) return true;
  const auto a = number_in(actual), e = number_in(expected);
  return a && e && std::abs(*a - *e) <= absolute + relative * std::abs(*e);
}

/// Length in bytes of the UTF-8 character at `at`; 0 if there is no valid one.
std::size_t length_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at);
  if (first < 0x80) return first >= ' ' || first == '\n' || first == '\t' ? 1 : 0;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(at + i) < 0x80 || byte(at + i) > 0xBF) return 0;
  return length;
}

/// Escapes bytes that are not valid text, since the result is stored in documents.
std::string as_text(std::string text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_of_character(text, at);
    if (length == 0) text[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
  return text;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return as_text(text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...");
}

}  // namespace

OutputPatterns::OutputPatterns(const Program& program) {
  const auto flags = std::regex::ECMAScript | std::regex::optimize;
  for (const auto& [name, pattern] : program.output) numbers_[name] = {pattern, std::regex(pattern, flags)};
  if (!program.check_pattern.empty()) check_ = Pattern{program.check_pattern, std::regex(program.check_pattern, flags)};
}

std::string OutputPatterns::read(std::string_view out, std::string_view err,
                                 std::map<std::string, double>& numbers) const {
  for (const auto& [name, pattern] : numbers_) {
    std::map<std::string, std::string> texts;
    const auto look = [&, &name = name, &regex = pattern.regex](std::string_view line) {
      texts.merge(last_matches(line, name, regex));
      return regex.mark_count() == 1 && !texts.empty();
    };
    find_last_line(out, look);
    if (texts.empty()) find_last_line(err, look);
    if (texts.empty())
      return fmt::format("no line of the output matches '{}', the pattern of \"{}\"", pattern.text, name);
    for (const auto& [quantity, text] : texts) {
      const auto number = number_in(text);
      if (!number)
        return fmt::format("the pattern '{}' of \"{}\" found \"{}\", which is not a number", pattern.text, quantity,
                           shortened(text));
      numbers[quantity] = *number;
    }
  }
  return {};
}

bool OutputPatterns::right(std::string_view out, std::string_view err) const {
  if (!check_) return true;
  const auto look = [&](std::string_view line) { return std::regex_search(line.begin(), line.end(), check_->regex); };
  return find_last_line(out, look) || find_last_line(err, look);
}

std::string difference(std::string_view actual, std::string_view expected, std::optional<double> absolute,
                       std::optional<double> relative) {
  if (actual == expected) return {};
  const std::vector<std::string_view> ours = lines_of(actual), theirs = lines_of(expected);
  const bool tolerant = absolute || relative;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i] == theirs[i]) continue;
    bool same = false;
    if (tolerant) {
      const auto a = words_of(ours[i]), e = words_of(theirs[i]);
      same = a.size() == e.size();
      for (std::size_t w = 0; same && w < a.size(); ++w)
        same = same_word(a[w], e[w], absolute.value_or(0), relative.value_or(0));
    }
    if (!same)
      return fmt::format("line {} is \"{}\" and should be \"{}\"", i + 1, shortened(ours[i]), shortened(theirs[i]));
  }
  if (ours.size() != theirs.size())
    return fmt::format("it has {} lines and should have {}", ours.size(), theirs.size());
  return tolerant ? std::string() : "it ends otherwise";
}

std::string output_tail(const std::string& out, const std::string& err) {
  std::string text = err.find_first_not_of(" \t\r\n") == err.npos ? out : err;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\r')) text.pop_back();
  if (text.size() > kOutputTail) text = "... " + text.substr(text.size() - kOutputTail);
  return as_text(std::move(text));
}

}  // namespace ergotune
