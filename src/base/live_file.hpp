// What a running session shows to those who watch it: a small file of fixed size beside its store, which the session,
// its runners and the page's server map. Nothing in it outlives the session, and nothing in it is a result: those are
// in the store. Writing costs no system call, so that watching costs a measurement nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// Requests of the web page to a session; bits.
enum LiveRequest : std::uint32_t { kStopAfterCurrent = 1, kPause = 2, kConfirmNow = 4 };

/// A GPU at one moment, as the energy meter has read it anyway. NaN: not read.
struct LiveSample {
  double time = 0;  ///< s since the epoch
  float power_w = 0, core_mhz = 0, memory_mhz = 0, temperature_c = 0;
  /// 0: power settles; 1: inside the window whose energy counts; 2: the measurement has ended.
  std::uint32_t window = 0;
  std::uint32_t writer = 0;  ///< the runner's process
  char reasons[40] = {};     ///< why the clocks are what they are, with commas
};

class LiveFile {
 public:
  static constexpr std::size_t kSamples = 4096;
  static constexpr std::size_t kStateBytes = 64 << 10;

  /// Makes the file anew, with room for all of it; nullptr where that cannot be. It goes with this object.
  static std::unique_ptr<LiveFile> create(const std::filesystem::path& file);
  /// Maps one that is there; nullptr where none is, or it is of another version.
  static std::unique_ptr<LiveFile> open(const std::filesystem::path& file);
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  /// The session's words (JSON). One process writes them; what does not fit is left out. state(): empty while there are
  /// none.
  void set_state(std::string_view text);
  std::string state() const;

  /// Any process may add samples; the oldest give way.
  void add(const LiveSample& sample);
  /// Those from number `next` on, as far as they are kept; `next` becomes the number of the one to come.
  std::vector<LiveSample> samples(std::uint64_t& next) const;
  /// An energy measurement is under way (and has been for less than ten seconds: who began it may be dead).
  bool measuring() const;

  void ask(std::uint32_t requests);
  void take_back(std::uint32_t requests);
  std::uint32_t requested() const;

  /// The process that made it, and whether it is there.
  long owner() const;
  bool owner_lives() const;

 private:
  struct Layout;
  LiveFile(Layout* layout, std::filesystem::path made) : layout_(layout), made_(std::move(made)) {}
  Layout* layout_;
  std::filesystem::path made_;  ///< empty where another made it
};

/// Where this process's session shows itself; empty: nowhere. Handed to workers as ERGOTUNE_LIVE, which is what a
/// worker gives.
std::filesystem::path live_path();
void set_live_path(const std::filesystem::path& file);
/// The file at live_path(), mapped once; nullptr where none is. For the one thread that measures.
LiveFile* live_file();

}  // namespace ergotune
