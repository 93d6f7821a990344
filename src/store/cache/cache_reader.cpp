#include "store/formats/recording_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/json_text.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "store/cache/cache_entry.hpp"
#include "store/cache/cache_quantities.hpp"
#include "store/formats/exported_session.hpp"
#include "store/formats/json_values.hpp"
#include "store/formats/text_source.hpp"

namespace ergotune {

namespace {

constexpr std::size_t kBlockSize = 256 * 1024;
// simdjson reads up to this many bytes beyond its input.
constexpr std::size_t kPadding = 64;
// The head holds names and values; a larger one does not belong to a cache.
constexpr std::size_t kLargestHead = 16u << 20;
constexpr int kMostThreads = 4;

/// The head of a cache, and the text read so far.
struct Opened {
  CacheHead head;
  Recording recording;
  Json session;             // session_json(), if ergotune wrote the file
  std::string text;         // from the file's beginning
  std::size_t entries = 0;  // position in it of the first entry
};

Value plain_value(const Json& json) {
  return json.is_array() || json.is_object() ? Value(json.dump()) : value_from(json);
}

void read_head(const std::string& text, std::size_t cache_at, const std::filesystem::path& file, Opened& opened) {
  Json json;
  try {
    json = parse_json<Json>(text.substr(0, cache_at) + "{}}");
    Recording& recording = opened.recording;
    const auto word = [&](const char* key) {
      return json.contains(key) && json.at(key).is_string() ? json.at(key).get<std::string>() : std::string();
    };
    recording.name = word("kernel_name");
    recording.device = word("device_name");
    recording.provenance = provenance_in_file(word("provenance"));
    opened.session = json.value("ergotune", Json());
    if (!word("objective").empty()) recording.objective.text = word("objective");
    const Json& values = json.at("tune_params");
    for (const Json& key : json.at("tune_params_keys")) {
      Parameter parameter = recorded_parameter(key.get<std::string>());
      for (const Json& value : values.at(parameter.name)) parameter.values.push_back(plain_value(value));
      opened.head.parameters.push_back(std::move(parameter));
    }
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("this is not a Kernel Tuner cache: {}", error.what()), {file.string(), 0, 0});
  }
}

/// Reads the file up to the first entry.
Opened open_cache(TextSource& source, const std::filesystem::path& file) {
  Opened opened;
  std::string& text = opened.text;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kBlockSize);
    const std::size_t got = source.read(text.data() + size, kBlockSize);
    text.resize(size + got);
    const std::size_t at = top_level_value(text, "cache");
    if (at != kNotFound && text[at] == '{') {
      read_head(text, at, file, opened);
      opened.entries = at + 1;
      return opened;
    }
    if (got == 0 || text.size() > kLargestHead) {
      if (text.find("\"tune_params") != kNotFound) {
        throw UserError("this cache is cut off before its first entry; nothing can be read from it",
                        {file.string(), 0, 0});
      }
      throw UserError("this is not a Kernel Tuner cache: it has no \"cache\"", {file.string(), 0, 0});
    }
  }
}

/// The result of one thread for one block of lines.
struct BlockResult {
  RecordingBuilder rows{0};
  std::size_t damaged = 0;
  bool last_line_lost = false;  ///< the block's last line has no end and is not an entry
  bool closed = false;          ///< the block contains the end of the entries
};

/// Hands out the file in blocks that end at line ends.
class LineBlocks {
 public:
  LineBlocks(TextSource& source, std::string first) : source_(source), rest_(std::move(first)) {}

  /// Fills `block`, with kPadding readable bytes behind its `size`; false at the end of the file.
  bool next(std::string& block, std::size_t& size, std::size_t& number, bool& unfinished) {
    const std::lock_guard lock(mutex_);
    if (done_) return false;
    block.assign(rest_);
    rest_.clear();
    while (true) {
      const std::size_t before = block.size();
      block.resize(before + kBlockSize);
      const std::size_t got = source_.read(block.data() + before, kBlockSize);
      block.resize(before + got);
      if (got < kBlockSize) done_ = true;
      if (done_) break;
      const auto newline = std::string_view(block).substr(before).rfind('\n');
      if (newline == std::string_view::npos) continue;  // the line is longer than a block
      rest_.assign(block, before + newline + 1);
      block.resize(before + newline + 1);
      break;
    }
    size = block.size();
    unfinished = done_;
    number = count_++;
    block.resize(size + kPadding);
    return size > 0;
  }

 private:
  TextSource& source_;
  std::string rest_;
  std::size_t count_ = 0;
  bool done_ = false;
  std::mutex mutex_;
};

/// Reads one line: `"16,1": {...},`. The last line may also contain the closing brackets of the enclosing objects.
/// Returns false if the line is not an entry.
bool read_line(std::string_view line, const char* block_end, CacheEntryParser& parser, bool& closed) {
  std::size_t at = skip_space(line, after_string(line, 0));
  if (at >= line.size() || line[at] != ':') return false;
  at = skip_space(line, at + 1);
  if (at >= line.size() || line[at] != '{') return false;
  std::string_view object = line.substr(at);
  if (object.back() == ',') object = trimmed(object.substr(0, object.size() - 1));
  if (object.back() != '}') return false;
  if (object[object.find_last_not_of(" \t", object.size() - 2)] == '}') {
    // "}}": the end of the entry and of the enclosing object, or of an object inside
    const std::size_t end = after_nested(object, 0);
    if (end == kNotFound) return false;
    if (object.find_first_not_of("} \t", end) != std::string_view::npos) return false;  // more entries on this line
    closed = end < object.size();
    object = object.substr(0, end);
  }
  return parser.parse(object.data(), object.size(), static_cast<std::size_t>(block_end - object.data()));
}

BlockResult read_block(const std::string& block, std::size_t size, bool unfinished, CacheEntryParser& parser) {
  BlockResult result;
  const char* const end = block.data() + size;
  const char* const readable_end = block.data() + block.size();
  for (const char* at = block.data(); at < end && !result.closed;) {
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    const char* line_end = newline ? newline : end;
    const std::string_view line = trimmed({at, static_cast<std::size_t>(line_end - at)});
    at = line_end + 1;
    if (line.empty() || line == ",") continue;
    if (line.front() == '}') {
      result.closed = true;
    } else if (line.front() != '"' || !read_line(line, readable_end, parser, result.closed)) {
      if (unfinished && !newline) {
        result.last_line_lost = true;
      } else {
        ++result.damaged;
      }
    }
  }
  result.rows = parser.take_rows();
  return result;
}

struct Outcome {
  RecordingBuilder rows{0};
  std::vector<std::vector<Value>> extra;
  std::size_t damaged = 0;
  bool cut = false, closed = false;
};

/// Maps the values that single parsers found beyond the head's to positions in one common list.
class ExtraValues {
 public:
  explicit ExtraValues(const CacheHead& head) : head_(head), lists_(head.parameters.size()) {}
  /// The positions of a parser's extra values in the common list.
  std::vector<std::vector<std::uint32_t>> join(const std::vector<std::vector<Value>>& extra) {
    std::vector<std::vector<std::uint32_t>> map(extra.size());
    for (std::size_t p = 0; p < extra.size(); ++p) {
      for (const Value& value : extra[p]) {
        auto found = std::ranges::find(lists_[p], value);
        if (found == lists_[p].end()) found = lists_[p].insert(lists_[p].end(), value);
        map[p].push_back(static_cast<std::uint32_t>(head_.parameters[p].values.size()) +
                         static_cast<std::uint32_t>(found - lists_[p].begin()));
      }
    }
    return map;
  }
  const std::vector<std::vector<Value>>& lists() const { return lists_; }

 private:
  const CacheHead& head_;
  std::vector<std::vector<Value>> lists_;
};

int thread_count(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  if (error || size < 16 * kBlockSize) return 1;
  return std::clamp(static_cast<int>(usable_processors()), 1, kMostThreads);
}

Outcome read_lines(const Opened& opened, TextSource& source, int threads) {
  LineBlocks blocks(source, opened.text.substr(opened.entries));
  std::mutex mutex;
  std::map<std::size_t, BlockResult> results;
  ExtraValues extras(opened.head);
  const auto work = [&] {
    CacheEntryParser parser(opened.head);
    std::string block;
    std::size_t size = 0, number = 0;
    bool unfinished = false;
    while (blocks.next(block, size, number, unfinished)) {
      BlockResult result = read_block(block, size, unfinished, parser);
      const std::lock_guard lock(mutex);
      const auto extra = parser.extra_values();
      if (std::ranges::any_of(extra, [](const auto& list) { return !list.empty(); })) {
        result.rows.map_positions(extras.join(extra), opened.head.parameters);
      }
      results.emplace(number, std::move(result));
    }
  };
  std::vector<std::thread> others;
  std::exception_ptr failure;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back(guarded);
  } catch (const std::system_error&) {
    // continue with fewer threads
  }
  guarded();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);

  Outcome outcome;
  outcome.rows = RecordingBuilder(opened.head.parameters.size());
  for (auto& [number, result] : results) {
    outcome.rows.append(result.rows);
    outcome.damaged += result.damaged;
    outcome.cut = result.last_line_lost;
    if (result.closed) {
      outcome.closed = true;
      break;
    }
  }
  outcome.extra = extras.lists();
  return outcome;
}

/// Reads entries that are not one per line: searches the whole text for matching brackets.
Outcome read_anywhere(const Opened& opened, TextSource& source) {
  std::string text = opened.text.substr(opened.entries);
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + kBlockSize);
    const std::size_t got = source.read(text.data() + size, kBlockSize);
    text.resize(size + got);
    if (got == 0) break;
  }
  const std::string_view view = text;
  CacheEntryParser parser(opened.head);
  Outcome outcome;
  for (std::size_t at = skip_space(view, 0); at < view.size(); at = skip_space(view, at)) {
    if (view[at] == ',') {
      ++at;
      continue;
    }
    if (view[at] != '"') {
      outcome.closed = view[at] == '}';
      break;
    }
    const std::size_t colon = skip_space(view, after_string(view, at));
    const std::size_t begin = colon < view.size() && view[colon] == ':' ? skip_space(view, colon + 1) : kNotFound;
    const std::size_t end = begin < view.size() && view[begin] == '{' ? after_nested(view, begin) : kNotFound;
    if (end == kNotFound) {
      outcome.cut = true;
      break;
    }
    if (!parser.parse(view.data() + begin, end - begin, view.size() - begin)) ++outcome.damaged;
    at = end;
  }
  outcome.extra = parser.extra_values();
  outcome.rows = parser.take_rows();
  return outcome;
}

void finish(Opened& opened, Outcome& outcome) {
  Recording& recording = opened.recording;
  const std::size_t rows = outcome.rows.rows();
  if (outcome.cut) {
    recording.warnings.push_back(fmt::format("cut off after {} entries; the cut entry is lost", rows));
  } else if (!outcome.closed) {
    recording.warnings.push_back(fmt::format("not closed, as a cache in use: all of its {} entries were read", rows));
  }
  if (outcome.damaged > 0) {
    recording.warnings.push_back(fmt::format("{} damaged entries were left out", outcome.damaged));
  }
  recording.parameters = std::move(opened.head.parameters);
  for (std::size_t p = 0; p < outcome.extra.size(); ++p) {
    auto& values = recording.parameters[p].values;
    values.insert(values.end(), outcome.extra[p].begin(), outcome.extra[p].end());
    if (outcome.extra[p].empty()) continue;
    recording.warnings.push_back(fmt::format("{} values of \"{}\" are in the entries but not in tune_params",
                                             outcome.extra[p].size(), recording.parameters[p].name));
  }
  outcome.rows.finish(recording);
  const auto has_column = [&](const std::string& name) { return recording.column(name) != nullptr; };
  const bool own_objective = has_column(recording.objective.text);
  for (std::string& remark : rename_columns(recording.columns)) recording.warnings.push_back(std::move(remark));
  if (!own_objective || !has_column(recording.objective.text))
    recording.objective.text = renamed(recording.objective.text);
  read_session_json(opened.session, recording);
}

}  // namespace

Recording read_cache(const std::filesystem::path& file) {
  TextSource source(file);
  Opened opened = open_cache(source, file);
  Outcome outcome = read_lines(opened, source, thread_count(file));
  outcome.cut = outcome.cut || source.cut();
  // A few damaged lines are damage; many mean that entries are not one per line.
  const std::size_t rows = outcome.rows.rows();
  if ((outcome.damaged > 0 && outcome.damaged * 4 >= rows) || (outcome.cut && rows == 0)) {
    TextSource again(file);
    opened = open_cache(again, file);
    outcome = read_anywhere(opened, again);
    outcome.cut = outcome.cut || again.cut();
  }
  opened.recording.file = file;
  finish(opened, outcome);
  return std::move(opened.recording);
}

}  // namespace ergotune
