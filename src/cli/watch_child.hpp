// Runs `ergotune watch` as a child process that ends with the session.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/process/process.hpp"

namespace ergotune::cli {

class WatchChild {
 public:
  /// Starts it and waits for its link. Throws Error on failure.
  WatchChild(const std::filesystem::path& store, std::int64_t session);
  /// Ends it after it has shown the last results.
  ~WatchChild();
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::optional<ChildProcess> child_;
};

}  // namespace ergotune::cli
