// The journal of a device's original settings, on disk before the first change; and the device's lock.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "power/controls/control.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune {

struct Journal {
  std::string device;     ///< id of the control, for messages
  std::string reopen_id;  ///< id that finds the device again
  std::string device_key;
  std::string boot_id;            ///< settings do not survive a restart of the machine, which changes this id
  pid_t pid = 0;                  ///< process id of the session
  std::uint64_t start_ticks = 0;  ///< start time of the session's process, since process ids are reused
  std::string command;
  double since = 0;  ///< s since the Unix epoch
  std::vector<RestoreStep> steps;
};

/// Formats a journal as JSON with a checksum.
std::string format_journal(const Journal& journal);
/// Parses a journal. Throws Error with the reason: not JSON, wrong checksum, unknown version, missing or mistyped
/// members.
Journal parse_journal(const std::string& text);

/// The folder of journals and locks. It is created at first use, for its owner only, and rejected if others could have
/// written to it (root carries out the writes that a journal lists).
class StateFolder {
 public:
  /// Throws UserError if the folder cannot be created, is a link, belongs to another user, or is writable by others.
  static StateFolder open(const std::filesystem::path& folder);
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal_file(const std::string& device_key) const;
  std::filesystem::path lock_file(const std::string& device_key) const;
  /// Paths of all journals.
  std::vector<std::filesystem::path> journal_files() const;
  /// Writes a journal durably: temporary file, fsync, rename, fsync of the folder. Throws Error.
  void write(const Journal& journal) const;
  /// Returns nullopt if the file does not exist; throws Error if it cannot be read or parsed.
  std::optional<Journal> read(const std::filesystem::path& file) const;
  /// Deletes a journal durably; a missing file is not an error. Throws Error.
  void clear(const std::filesystem::path& file) const;
  /// Renames a damaged journal ("*.damaged"), so that it does not block sessions and can be inspected.
  void set_aside(const std::filesystem::path& file) const;

 private:
  explicit StateFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// Exclusive lock on a device (flock). It belongs to the open file description, which the guardian inherits: the device
/// stays locked until both session and guardian have ended.
class DeviceLock {
 public:
  /// Returns nullopt if the lock is held; `holder` then receives the process that recorded itself as the holder. Throws
  /// UserError if the file cannot be used.
  static std::optional<DeviceLock> try_take(const StateFolder& folder, const std::string& device_key,
                                            DeviceHolder* holder = nullptr);
  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock& operator=(DeviceLock&& other) noexcept;
  ~DeviceLock();
  int descriptor() const { return descriptor_; }
  /// Records the holder in the file, for the message to other sessions.
  void name_holder(const DeviceHolder& holder) const;

 private:
  explicit DeviceLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// Returns the id of the current boot (/proc/sys/kernel/random/boot_id), independently of sysfs_root and the
/// environment.
std::string boot_id();
/// Returns the start time of a process in clock ticks since boot; 0 if it does not exist.
std::uint64_t process_start_ticks(pid_t pid);
/// True if the process `pid` that started at `start_ticks` is running (a zombie is not).
bool process_alive(pid_t pid, std::uint64_t start_ticks);

/// Resets the clock locks of a device whose journal is damaged: the original settings are unknown, but locks of an
/// ended session must not remain. Returns a description for users.
std::string reset_locks(Control& control);

/// How a journal is restored.
struct RestoreOptions {
  /// See replay_stale_journals() in guardian.hpp.
  bool replay_after_restart = true;
  /// Number of attempts with growing pauses, about 0.05 * 2^attempts s in total.
  int attempts = 6;
  /// The device if it is already open; null: it is opened.
  Control* control = nullptr;
  /// Steps to skip, by index, with the reason: they ended or blocked the process that tried before.
  std::map<std::size_t, std::string> left_out = {};
  /// Time in s without progress after which a separate process (restore_in_process) is given up; a quarter of it after
  /// the first time.
  double patience = 8;
  /// Called before each step with its index, and before the device is opened (with kOpening).
  std::function<void(std::size_t)> before_step = {};
  static constexpr std::size_t kOpening = static_cast<std::size_t>(-1);
};

/// Restores a device: carries out each step of a journal independently, verifies, retries failed steps, and deletes the
/// journal when all have succeeded. Does not throw.
RestoreReport restore_journal(const StateFolder& folder, const std::filesystem::path& file,
                              const ControlEnvironment& environment, const RestoreOptions& round = {});

}  // namespace ergotune
