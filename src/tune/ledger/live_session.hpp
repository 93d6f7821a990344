// What a session shows to those who watch it, and what they ask of it, by way of a small file beside its store
// (base/live_file.hpp). Where that file cannot be made a session is not watched, and goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/live_file.hpp"
#include "tune/session/session.hpp"

namespace ergotune {

class LiveSession {
 public:
  /// Made before the workers start, which inherit its path. An empty store: nothing is shown.
  explicit LiveSession(const std::filesystem::path& store);
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  /// Which session of the store it is, and what stays as it is.
  void describe(std::int64_t session, bool on_cpu, std::vector<std::string> notes);
  /// How far the search is (its `last` is not looked at).
  void tell(const SessionProgress& progress);

  struct OnDevice {
    std::size_t slot = 0;
    std::string configuration;  ///< describe()
    double since = 0;           ///< s since the epoch
  };
  struct Now {
    std::string state;  ///< running, pausing, paused, stopping
    std::string phase, stage;
    std::uint64_t evaluated = 0, known = 0, under_way = 0;
    std::vector<OnDevice> slots;
  };
  /// Whether it is time to show() again: ten times a second, so that a replay's thousands of results cost nothing.
  bool due() const;
  void show(const Now& now);

  std::uint32_t requested() const { return file_ ? file_->requested() : 0; }
  void take_back(std::uint32_t requests);

 private:
  std::filesystem::path path_, before_;
  std::unique_ptr<LiveFile> file_;
  std::int64_t session_ = 0;
  bool on_cpu_ = false;
  std::vector<std::string> notes_;
  SessionProgress progress_;
  bool reported_ = false;
  double shown_at_ = 0;
};

}  // namespace ergotune
