// One entry of a Kernel Tuner cache: {"block_size_x": 16, ..., "time": 1.2, "times": [...], ...}.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "store/formats/recording_builder.hpp"

namespace ergotune {

/// What every thread of a reader needs to know of the cache's head.
struct CacheHead {
  std::vector<Parameter> parameters;
};

/// Parses entries into a builder of its own. Not for sharing between threads.
class CacheEntryParser {
 public:
  explicit CacheEntryParser(const CacheHead& head);
  ~CacheEntryParser();
  CacheEntryParser(const CacheEntryParser&) = delete;
  CacheEntryParser& operator=(const CacheEntryParser&) = delete;

  /// The object at [text, text + size). `readable` bytes from text on may be read (simdjson looks ahead);
  /// what is too short is copied. False when it is not a whole entry; then nothing is added.
  bool parse(const char* text, std::size_t size, std::size_t readable);
  RecordingBuilder take_rows();
  /// Values met that the head does not list, by parameter; their positions count on from the head's.
  std::vector<std::vector<Value>> extra_values() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
