// The journal: what must be put back on a device, on disk before the first change. And the device's lock.
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
  std::string device;     ///< the control's id, for people
  std::string reopen_id;  ///< the id that finds the device again
  std::string device_key;
  std::string boot_id;            ///< settings do not survive a restart of the machine; this tells one from the next
  pid_t pid = 0;                  ///< the session
  std::uint64_t start_ticks = 0;  ///< of the session's process: a pid alone may have been used again
  std::string command;
  double since = 0;  ///< s since the epoch
  std::vector<RestoreStep> steps;
};

/// JSON with a checksum.
std::string format_journal(const Journal& journal);
/// Throws Error saying what is wrong: not JSON, wrong checksum, unknown version, missing or mistyped members.
Journal parse_journal(const std::string& text);

/// The folder of journals and locks. Made on first use, for its owner only; refused when others could have
/// put something there (a journal is a list of writes that root carries out).
class StateFolder {
 public:
  /// Throws UserError when it cannot be made, is a link, belongs to another user, or is writable by others.
  static StateFolder open(const std::filesystem::path& folder);
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path journal_file(const std::string& device_key) const;
  std::filesystem::path lock_file(const std::string& device_key) const;
  /// Files of all journals.
  std::vector<std::filesystem::path> journal_files() const;
  /// Writes durably: temporary file, fsync, rename, fsync of the folder. Throws Error.
  void write(const Journal& journal) const;
  /// nullopt when there is none; throws Error when it cannot be read or parsed.
  std::optional<Journal> read(const std::filesystem::path& file) const;
  /// Removes it durably; missing is fine. Throws Error.
  void clear(const std::filesystem::path& file) const;
  /// Puts a damaged journal aside ("*.damaged"), so that it blocks no session and can be inspected.
  void set_aside(const std::filesystem::path& file) const;

 private:
  explicit StateFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// An exclusive lock on one device (flock). It belongs to the open file, which the guardian inherits: the
/// device stays locked until both session and guardian are gone.
class DeviceLock {
 public:
  /// nullopt when it is held; `holder` then receives who says to hold it. Throws UserError when the file
  /// can't be used.
  static std::optional<DeviceLock> try_take(const StateFolder& folder, const std::string& device_key,
                                            DeviceHolder* holder = nullptr);
  DeviceLock(DeviceLock&& other) noexcept;
  DeviceLock& operator=(DeviceLock&& other) noexcept;
  ~DeviceLock();
  int descriptor() const { return descriptor_; }
  /// Writes who holds it, for the message that a second session gets.
  void name_holder(const DeviceHolder& holder) const;

 private:
  explicit DeviceLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// /proc/sys/kernel/random/boot_id; of this machine, whatever sysfs root the tests use. ERGOTUNE-free.
std::string boot_id();
/// Start time of a process in clock ticks since boot; 0 when there is no such process.
std::uint64_t process_start_ticks(pid_t pid);
/// True when the process that was `pid` at `start_ticks` still runs (a zombie does not).
bool process_alive(pid_t pid, std::uint64_t start_ticks);

/// Resets the clock locks of a device whose journal is damaged: what was there before cannot be known, but no lock of a
/// session that has ended may stay. What was done, for people.
std::string reset_locks(Control& control);

/// How a journal is carried out.
struct RestoreRound {
  /// See guardian.hpp.
  bool replay_after_restart = true;
  /// Rounds with growing pauses, about 0.05 * 2^attempts s in all.
  int attempts = 6;
  /// The device, where it is open already; else it is opened.
  Control* control = nullptr;
  /// Steps by position that are left alone, with the reason: they ended or held up the process that tried before.
  std::map<std::size_t, std::string> left_out = {};
  /// s that a process of its own (restore_apart) may be silent before its step is given up; a fourth of it once one
  /// was.
  double patience = 8;
  /// Told before each step by its position, and before the device is opened (kOpening).
  std::function<void(std::size_t)> about_to = {};
  static constexpr std::size_t kOpening = static_cast<std::size_t>(-1);
};

/// Carries out a journal's steps on its device, each on its own, verifies, retries failed ones, and clears
/// the journal when all are done. Never throws.
RestoreReport restore_journal(const StateFolder& folder, const std::filesystem::path& file,
                              const ControlEnvironment& environment, const RestoreRound& round = {});

}  // namespace ergotune
