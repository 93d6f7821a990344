#include "capture/source_words.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

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

namespace {

/// The name of the function that a definition's head declares: what stands before its parameters; empty where it is
/// none.
std::string function_in(std::string_view head) {
  std::string name;
  int depth = 0;
  for (std::size_t at = 0; at < head.size(); ++at) {
    if (const std::size_t end = skipped(head, at); end != at) {
      at = end - 1;
    } else if (head[at] == '(' && depth++ == 0) {
      std::size_t end = at;
      while (end > 0 && std::isspace(static_cast<unsigned char>(head[end - 1]))) --end;
      std::size_t begin = end;
      while (begin > 0 && in_word(head[begin - 1])) --begin;
      const std::string_view word = head.substr(begin, end - begin);
      if (!word.empty() && word != "__attribute__" && word != "__launch_bounds__") name = word;
    } else if (head[at] == ')') {
      --depth;
    }
  }
  return name;
}

/// Where a preprocessor's line ends.
std::size_t end_of_directive(std::string_view source, std::size_t at) {
  std::size_t end = source.find('\n', at);
  while (end != std::string_view::npos && source[end - 1] == '\\') end = source.find('\n', end + 1);
  return std::min(end, source.size());
}

/// A source in parts: the words of functions and macros by their name, and those outside of them.
struct Parts {
  std::map<std::string, std::set<std::string, std::less<>>> definitions;
  std::set<std::string, std::less<>> outside;
  bool whole = false;  ///< every brace was closed
};

Parts parts_of(std::string_view source) {
  Parts parts;
  std::size_t begin = 0, body = 0;  // of what is being read, and of its first brace
  int depth = 0;
  const auto take = [&](std::size_t end, const std::string& name) {
    (name.empty() ? parts.outside : parts.definitions[name]).merge(words_of(source.substr(begin, end - begin)));
    begin = end;
  };
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (const std::size_t end = skipped(source, at); end != at) {
      at = end - 1;
    } else if (source[at] == '#') {
      const std::size_t end = end_of_directive(source, at);
      const std::string_view line = source.substr(at, end - at);
      std::size_t name = line.find("define");
      if (name != std::string_view::npos) name = line.find_first_not_of(" \t", name + 6);
      if (name != std::string_view::npos) {
        std::size_t stop = name;
        while (stop < line.size() && in_word(line[stop])) ++stop;
        parts.definitions[std::string(line.substr(name, stop - name))].merge(words_of(line.substr(stop)));
      }
      if (depth == 0) begin = end;
      at = end;
    } else if (source[at] == '{' && depth++ == 0) {
      body = at;
      const std::string_view head = source.substr(begin, at - begin);
      const auto words = words_of(head);
      if (head.find('(') == std::string_view::npos && (words.contains("namespace") || words.contains("extern"))) {
        depth = 0;  // its contents stand outside as well
        begin = at + 1;
      }
    } else if (source[at] == '}') {
      if (depth == 0)
        begin = at + 1;  // of a namespace
      else if (--depth == 0)
        take(at + 1, function_in(source.substr(begin, body - begin)));
    } else if (source[at] == ';' && depth == 0) {
      take(at + 1, "");
    }
  }
  parts.whole = depth == 0;
  return parts;
}

}  // namespace

std::set<std::string, std::less<>> words_of_kernel(std::string_view source, std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find('<'));
  if (const std::size_t colon = kernel.rfind(':'); colon != std::string_view::npos) kernel.remove_prefix(colon + 1);
  const Parts parts = parts_of(source);
  if (!parts.whole || !parts.definitions.contains(std::string(kernel))) return words_of(source);
  std::set<std::string, std::less<>> words;
  std::vector<std::string> waiting{std::string(kernel)};
  while (!waiting.empty()) {
    const std::string word = std::move(waiting.back());
    waiting.pop_back();
    if (!words.insert(word).second) continue;
    if (const auto found = parts.definitions.find(word); found != parts.definitions.end())
      waiting.insert(waiting.end(), found->second.begin(), found->second.end());
  }
  words.insert(parts.outside.begin(), parts.outside.end());
  return words;
}

bool relies_on_block(std::string_view word) {
  constexpr std::string_view kWords[] = {"barrier",
                                         "__local",
                                         "local",
                                         "reqd_work_group_size",
                                         "work_group_barrier",
                                         "work_group_all",
                                         "work_group_any",
                                         "work_group_broadcast",
                                         "async_work_group_copy",
                                         "__shared__",
                                         "__syncthreads",
                                         "cooperative_groups"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords) ||
         word.starts_with("work_group_reduce_") || word.starts_with("work_group_scan_") ||
         word.starts_with("sub_group_") || word.starts_with("get_sub_group") || word.starts_with("__shfl");
}

bool asks_for_block(std::string_view word) {
  return word == "get_local_id" || word == "get_local_size" || word == "get_group_id" || word == "get_num_groups" ||
         word == "get_enqueued_local_size" || word == "get_local_linear_id" || word == "threadIdx" ||
         word == "blockIdx" || word == "blockDim" || word == "gridDim";
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
