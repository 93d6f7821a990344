#include "store/sqlite/failure_groups.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace ergotune {
namespace {

bool is_digit(const std::string& text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
}

/// The message without the parts that differ between configurations.
std::string kind_of(const std::string& message) {
  // Names of temporary files end in random letters: ergotune-host-Xa81kP, and PoCL's tempfile_Xa81kP.cl.
  constexpr std::string_view kScratch[] = {"ergotune-", "tempfile_"};
  std::string kind;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (is_digit(message, i)) {  // 3, 3.25, 1e-05: one number
      while (is_digit(message, i + 1) || (message.compare(i + 1, 1, ".") == 0 && is_digit(message, i + 2)) ||
             (message.compare(i + 1, 2, "e-") == 0 && is_digit(message, i + 3)) ||
             (message.compare(i + 1, 2, "e+") == 0 && is_digit(message, i + 3)))
        i += message[i + 1] == 'e' ? 2 : 1;
      kind += '#';
    } else if (const auto scratch =
                   std::find_if(std::begin(kScratch), std::end(kScratch),
                                [&](std::string_view name) { return message.compare(i, name.size(), name) == 0; });
               scratch != std::end(kScratch)) {
      i += scratch->size();
      while (std::isalnum(static_cast<unsigned char>(message[i])) || message[i] == '-')
        ++i;  // a string is terminated by a zero, so that i + 1 is readable
      --i;
      kind += *scratch;
    } else {
      kind += message[i];
    }
  }
  return kind;
}

}  // namespace

void FailureGroups::add(std::size_t number, Status status, const std::string& message) {
  const auto [place, added] = place_.try_emplace(to_string(status) + ": " + kind_of(message), groups_.size());
  if (added) groups_.push_back({status, message, 0, number});
  ++groups_[place->second].count;
}

std::vector<FailureGroup> FailureGroups::list() const {
  std::vector<FailureGroup> list = groups_;
  std::stable_sort(list.begin(), list.end(),
                   [](const FailureGroup& a, const FailureGroup& b) { return a.count > b.count; });
  return list;
}

std::string most_informative_line(std::string_view description) {
  std::string_view first;
  while (!description.empty()) {
    const std::size_t end = std::min(description.find('\n'), description.size());
    const std::string_view line = description.substr(0, end);
    if (line.find("error: ") != line.npos || line.find("Error: ") != line.npos || line.starts_with("error")) {
      first = line;
      break;
    }
    if (first.empty()) first = trimmed(line);
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  return std::string(trimmed(first));
}

}  // namespace ergotune
