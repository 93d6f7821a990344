// What has been decided, by what a launch says: found without a lock and without a text.
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

inline constexpr std::size_t kMostBound = 16;

/// A place, and the bits of the scalars that decide something.
struct LaunchKey {
  Place place;
  std::uint32_t count = 0;
  std::array<std::uint64_t, kMostBound> values{};
  std::uint64_t hash() const;
  bool operator==(const LaunchKey& other) const;
};

/// What such launches run, and how that came about.
struct Decision {
  LaunchPlan plan;
  Configuration configuration;
  Constants execution;  ///< what it was tuned at
  std::string reason, match;
  double distance = 0;
  bool is_default = true;
};

/// Of one key. Readers look at `decision`; who decides holds `mutex`.
struct LaunchEntry {
  LaunchKey key;
  std::atomic<const Decision*> decision{nullptr};
  std::mutex mutex;
  bool settled = false;  ///< false: something better may be on its way
  std::atomic<bool> captured{false};
};

class LaunchTable {
 public:
  LaunchTable();
  /// nullptr where the key is new. From any thread, at any time.
  LaunchEntry* find(const LaunchKey& key, std::uint64_t hash) const;
  /// The one of this key, new or not.
  LaunchEntry& at(const LaunchKey& key, std::uint64_t hash);
  /// Keeps a decision as long as the table: a reader may still have the one that it replaces.
  const Decision* keep(std::unique_ptr<Decision> decision);
  /// Every entry decides anew.
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
  std::vector<std::unique_ptr<Slots>> all_slots_;  ///< also those that were grown out of: a reader may be in them
  std::deque<LaunchEntry> entries_;
  std::vector<std::unique_ptr<Decision>> decisions_;
};

}  // namespace ergotune::launcher
