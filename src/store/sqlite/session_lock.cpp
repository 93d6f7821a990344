#include <fmt/format.h>

#include "base/process/file_lock.hpp"
#include "ergotune/error.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

SessionLock::SessionLock(const std::filesystem::path& store, std::int64_t session) {
  const std::filesystem::path file = fmt::format("{}-session{}.lock", store.string(), session);
  lock_ = std::make_unique<FileLock>(file);
  std::error_code trouble;
  const bool taken = lock_->take(trouble);
  if (trouble)
    throw UserError(fmt::format("cannot make the lock of a session: {}", trouble.message()), {file.string(), 0, 0});
  if (taken) return;
  const long pid = lock_->holder();
  throw UserError(
      fmt::format("session {} is being tuned by {}; wait until it has ended (then this command goes on from "
                  "its results), or give this run a store of its own with --store",
                  session, pid > 0 ? fmt::format("process {}", pid) : std::string("another process")),
      {store.string(), 0, 0});
}

SessionLock::~SessionLock() = default;

}  // namespace ergotune
