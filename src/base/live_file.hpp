// Live data of a running session for viewers: a small file of fixed size next to its store, memory-mapped by the
// session, its runners and the web server. The file is removed with the session and contains no results, which are in
// the store. Writing needs no system call, so that viewers do not disturb measurements.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// Requests of the web page to a session, as bits.
enum LiveRequest : std::uint32_t { kStopAfterCurrent = 1, kPause = 2, kConfirmNow = 4 };

/// State of a GPU at one moment, as read by the energy meter. NaN: not read.
struct LiveSample {
  double time = 0;  ///< s since the Unix epoch
  float power_w = 0, core_mhz = 0, memory_mhz = 0, temperature_c = 0;
  /// 0: power is settling; 1: within the measured window; 2: the measurement has ended.
  std::uint32_t window = 0;
  std::uint32_t writer = 0;  ///< process id of the runner
  char reasons[40] = {};     ///< reasons for the clocks, separated by commas
};

class LiveFile {
 public:
  static constexpr std::size_t kSamples = 4096;
  static constexpr std::size_t kStateBytes = 64 << 10;

  /// Creates the file with its full size; returns nullptr on failure. The file is removed with this object.
  static std::unique_ptr<LiveFile> create(const std::filesystem::path& file);
  /// Maps an existing file; returns nullptr if it does not exist or has another version.
  static std::unique_ptr<LiveFile> open(const std::filesystem::path& file);
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  /// Sets the session's state (JSON). Only one process may write it; text that does not fit is dropped. state() is
  /// empty if none was set.
  void set_state(std::string_view text);
  std::string state() const;

  /// Adds a sample; any process may do so. The oldest samples are overwritten.
  void add(const LiveSample& sample);
  /// Returns the samples from number `next` on that are still available; `next` becomes the number of the next one.
  std::vector<LiveSample> samples(std::uint64_t& next) const;
  /// True if an energy measurement is in progress that began less than ten seconds ago (its process may have died).
  bool measuring() const;

  void ask(std::uint32_t requests);
  void take_back(std::uint32_t requests);
  std::uint32_t requested() const;

  /// Process id of the creator, and whether that process is running.
  long owner() const;
  bool owner_lives() const;
  /// Whether the creator ran here, in the same boot and among the same processes: only then is owner_lives() certain,
  /// as file systems are shared between machines and containers.
  bool made_here() const;

 private:
  struct Layout;
  LiveFile(Layout* layout, std::filesystem::path made) : layout_(layout), made_(std::move(made)) {}
  Layout* layout_;
  std::filesystem::path made_;  ///< empty: created by another process
};

/// Path of the live file of this process's session; empty: none. Passed to workers in ERGOTUNE_LIVE.
std::filesystem::path live_path();
void set_live_path(const std::filesystem::path& file);
/// Returns the file at live_path(), mapped once; nullptr if there is none. For use by the measuring thread only.
LiveFile* live_file();

}  // namespace ergotune
