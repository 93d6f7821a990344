// Table of decisions by launch key, which is searched without locks and without strings.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "launcher/native.hpp"

namespace ergotune::launcher {

class HeldClocks;
struct OnlineTuning;

inline constexpr std::size_t kMostBound = 16;

/// A place, and the bits of the scalars that determine constants.
struct LaunchKey {
  Place place;
  std::uint32_t count = 0;
  std::array<std::uint64_t, kMostBound> values{};
  std::uint64_t hash() const;
  bool operator==(const LaunchKey& other) const;
};

/// The configuration and code of such launches, and the reason for the choice.
struct Decision {
  LaunchPlan plan;
  Configuration configuration;
  Constants execution;             ///< clocks and limits at which it was tuned
  HeldClocks* held = nullptr;      ///< the device's, if clocks are applied
  OnlineTuning* online = nullptr;  ///< while launches try other configurations
  double clock_mhz = 0;            ///< the core clock to run at; 0: the common one of all kernels
  double seconds = 0;              ///< how long a launch took when it was tuned; 0: not known
  double clock_latency = 0;        ///< how long a change of clock took then, s; 0: not known
  std::string reason, match;
  double distance = 0;
  bool is_default = true;
};

/// The entry of one key. Readers load `decision`; a thread that decides holds `mutex`.
struct LaunchEntry {
  LaunchKey key;
  std::atomic<const Decision*> decision{nullptr};
  std::mutex mutex;
  bool settled = false;  ///< false: a better decision may follow
  std::atomic<bool> captured{false};
  std::atomic<OnlineTuning*> online{nullptr};  ///< the latest, also at its end
};

class LaunchTable {
 public:
  LaunchTable();
  /// Returns nullptr for a new key. Any thread may call it at any time.
  LaunchEntry* find(const LaunchKey& key, std::uint64_t hash) const;
  /// Returns the entry of a key, and adds it if it is new.
  LaunchEntry& at(const LaunchKey& key, std::uint64_t hash);
  /// Keeps a decision until the table is destroyed, since a reader may still use the decision that it replaces.
  const Decision* keep(std::unique_ptr<Decision> decision);
  /// Makes all entries decide again.
  void forget_decisions();

 private:
  struct Slots {
    explicit Slots(std::size_t size) : mask(size - 1), slots(size) {}
    std::size_t mask;
    std::vector<std::atomic<LaunchEntry*>> slots;
  };
  static void put(Slots& slots, LaunchEntry* entry, std::uint64_t hash);
  std::atomic<const Slots*> slots_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slots>> all_slots_;  ///< including replaced ones, which a reader may still use
  std::deque<LaunchEntry> entries_;
  std::vector<std::unique_ptr<Decision>> decisions_;
};

}  // namespace ergotune::launcher
