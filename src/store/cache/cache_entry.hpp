// One entry of a Kernel Tuner cache: {"block_size_x": 16, ..., "time": 1.2, "times": [...], ...}.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "store/formats/recording_builder.hpp"

namespace ergotune {

/// The parts of the cache's head that every parsing thread needs.
struct CacheHead {
  std::vector<Parameter> parameters;
};

/// Parses entries into its own builder. Not thread-safe.
class CacheEntryParser {
 public:
  explicit CacheEntryParser(const CacheHead& head);
  ~CacheEntryParser();
  CacheEntryParser(const CacheEntryParser&) = delete;
  CacheEntryParser& operator=(const CacheEntryParser&) = delete;

  /// Parses the object at [text, text + size). `readable`: bytes readable from `text` on (simdjson reads ahead); with
  /// too few of them the text is copied. Returns false if the text is not a complete entry; then nothing is added.
  bool parse(const char* text, std::size_t size, std::size_t readable);
  RecordingBuilder take_rows();
  /// Values that the head does not list, by parameter, in the order found; their positions follow those of the head's
  /// values.
  std::vector<std::vector<Value>> extra_values() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
