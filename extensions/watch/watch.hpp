// The live page's server: one page on this machine's own address, from a store that a session writes or has written.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace ergotune {

struct WatchOptions {
  /// A store, or a folder with stores.
  std::filesystem::path place;
  std::int64_t session = 0;  ///< which one the page shows first; 0: the one worked on last
  int port = 0;              ///< 0: any that is free
  bool wait = false;         ///< a store that is not there yet will be
};

class WatchServer {
 public:
  /// Listens on 127.0.0.1. Throws UserError for a place that holds no store and a port that is taken.
  explicit WatchServer(const WatchOptions& options);
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  /// "http://127.0.0.1:PORT/?token=...": whoever has it sees the sessions, and may stop and pause them.
  std::string url() const;
  /// Serves until `stop` is set, or `parent` (a process; 0: none) has gone.
  void serve(const std::atomic<bool>& stop, long parent = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
