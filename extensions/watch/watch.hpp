// The server of the live page on this machine's loopback address, for a store that a session writes or has written.
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
  std::int64_t session = 0;  ///< which session the page shows first; 0: the one worked on last
  int port = 0;              ///< 0: any free port
  bool wait = false;         ///< wait for a store that does not exist yet
};

class WatchServer {
 public:
  /// Listens on 127.0.0.1. Throws UserError if `place` contains no store, or if the port is in use.
  explicit WatchServer(const WatchOptions& options);
  ~WatchServer();
  WatchServer(const WatchServer&) = delete;
  WatchServer& operator=(const WatchServer&) = delete;

  /// "http://127.0.0.1:PORT/?token=...": gives access to the sessions, including stop and pause.
  std::string url() const;
  /// Serves until `stop` is set, or the process `parent` (0: none) has ended.
  void serve(const std::atomic<bool>& stop, long parent = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
