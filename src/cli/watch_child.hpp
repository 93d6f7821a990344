// `ergotune watch` as a child of a session: it ends with it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/process/process.hpp"

namespace ergotune::cli {

class WatchChild {
 public:
  /// Starts it and waits for its link. Throws Error where it does not begin.
  WatchChild(const std::filesystem::path& store, std::int64_t session);
  /// Lets it show the last results.
  ~WatchChild();
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::optional<ChildProcess> child_;
};

}  // namespace ergotune::cli
