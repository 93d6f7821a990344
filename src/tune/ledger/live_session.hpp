// Publishes a session to web pages and receives their requests, through a small file beside the store
// (base/live_file.hpp). If the file cannot be created, the session runs without being published.
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
  /// Create it before the workers, which inherit the path of the file. An empty `store`: nothing is published.
  explicit LiveSession(const std::filesystem::path& store);
  ~LiveSession();
  LiveSession(const LiveSession&) = delete;
  LiveSession& operator=(const LiveSession&) = delete;

  /// Sets the session's id in the store and the fields that do not change.
  void describe(std::int64_t session, bool on_cpu, std::vector<std::string> notes);
  /// Sets the progress of the search; SessionProgress::last is ignored.
  void set_progress(const SessionProgress& progress);

  struct OnDevice {
    std::size_t slot = 0;
    std::string configuration;  ///< text from describe()
    double since = 0;           ///< s since the epoch
  };
  struct Now {
    std::string state;  ///< running, pausing, paused, stopping
    std::string phase, stage;
    std::uint64_t evaluated = 0, known = 0, under_way = 0;
    std::vector<OnDevice> slots;
  };
  /// Whether the next show() is due: ten times a second, so that thousands of replayed results cost nothing.
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
