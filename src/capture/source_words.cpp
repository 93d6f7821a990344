#include "capture/source_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>

#include "capture/capture_folder.hpp"

namespace ergotune::capture {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where a comment or a string ends that begins at `at`; `at` where none does.
std::size_t skipped(std::string_view source, std::size_t at) {
  const auto end_of = [&](std::string_view end, std::size_t from) {
    const std::size_t found = source.find(end, from);
    return found == std::string_view::npos ? source.size() : found + end.size();
  };
  if (source.substr(at, 2) == "//") return end_of("\n", at);
  if (source.substr(at, 2) == "/*") return end_of("*/", at + 2);
  if (source[at] != '"' && source[at] != '\'') return at;
  std::size_t end = at + 1;
  while (end < source.size() && source[end] != source[at] && source[end] != '\n') end += source[end] == '\\' ? 2 : 1;
  return std::min(end + 1, source.size());
}

}  // namespace

std::set<std::string, std::less<>> words_of(std::string_view source) {
  std::set<std::string, std::less<>> words;
  for (std::size_t at = 0; at < source.size();) {
    if (const std::size_t end = skipped(source, at); end != at) {
      at = end;
      continue;
    }
    std::size_t end = at;
    while (end < source.size() && in_word(source[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    if (!std::isdigit(static_cast<unsigned char>(source[at])) && !words.contains(source.substr(at, end - at)))
      words.emplace(source.substr(at, end - at));
    at = end;
  }
  return words;
}

bool relies_on_block(std::string_view word) {
  constexpr std::string_view kWords[] = {"barrier",        "__local",    "local",          "reqd_work_group_size",
                                         "work_group_barrier", "work_group_all", "work_group_any", "work_group_broadcast",
                                         "async_work_group_copy", "__shared__", "__syncthreads", "cooperative_groups"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) || word.starts_with("work_group_reduce_") ||
         word.starts_with("work_group_scan_") || word.starts_with("sub_group_") || word.starts_with("get_sub_group") || word.starts_with("__shfl");
}

bool asks_for_block(std::string_view word) {
  return word == "get_local_id" || word == "get_local_size" || word == "get_group_id" || word == "get_num_groups" ||
         word == "get_enqueued_local_size" || word == "get_local_linear_id" || word == "threadIdx" || word == "blockIdx" ||
         word == "blockDim" || word == "gridDim";
}

std::vector<std::string> split_options(const std::string& options) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool begun = false;
  for (const char c : options) {
    if (quote) {
      if (c == quote) quote = 0;
      word += c;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
      continue;
    } else {
      if (c == '"' || c == '\'') quote = c;
      word += c;
    }
    begun = true;
  }
  if (begun) words.push_back(word);
  return words;
}

std::string source_hash(std::string_view source) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return text;
}

}  // namespace ergotune::capture
