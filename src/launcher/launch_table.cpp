#include "launcher/launch_table.hpp"

#include <algorithm>

namespace ergotune::launcher {

std::uint64_t LaunchKey::hash() const {
  std::uint64_t h =
      reinterpret_cast<std::uintptr_t>(place.context) ^ (reinterpret_cast<std::uintptr_t>(place.device) << 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    h ^= values[i];
    h *= 0x9e3779b97f4a7c15ull;  // 2^64 over the golden ratio
    h ^= h >> 32;
  }
  h *= 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

bool LaunchKey::operator==(const LaunchKey& other) const {
  return place == other.place && count == other.count &&
         std::equal(values.begin(), values.begin() + count, other.values.begin());
}

LaunchTable::LaunchTable() {
  all_slots_.push_back(std::make_unique<Slots>(64));
  slots_ = all_slots_.back().get();
}

LaunchEntry* LaunchTable::find(const LaunchKey& key, std::uint64_t hash) const {
  const Slots& slots = *slots_.load(std::memory_order_acquire);
  for (std::size_t i = hash & slots.mask;; i = (i + 1) & slots.mask) {
    LaunchEntry* entry = slots.slots[i].load(std::memory_order_acquire);
    if (!entry || entry->key == key) return entry;
  }
}

void LaunchTable::put(Slots& slots, LaunchEntry* entry, std::uint64_t hash) {
  std::size_t i = hash & slots.mask;
  while (slots.slots[i].load(std::memory_order_relaxed)) i = (i + 1) & slots.mask;
  slots.slots[i].store(entry, std::memory_order_release);
}

LaunchEntry& LaunchTable::at(const LaunchKey& key, std::uint64_t hash) {
  const std::lock_guard lock(mutex_);
  if (LaunchEntry* known = find(key, hash)) return *known;
  LaunchEntry& entry = entries_.emplace_back();
  entry.key = key;
  // half of the slots stay free, so that searches are short
  if (entries_.size() * 2 > all_slots_.back()->slots.size()) {
    auto larger = std::make_unique<Slots>(all_slots_.back()->slots.size() * 4);
    for (LaunchEntry& each : entries_) put(*larger, &each, each.key.hash());
    slots_.store(larger.get(), std::memory_order_release);
    all_slots_.push_back(std::move(larger));
  } else {
    put(*all_slots_.back(), &entry, hash);
  }
  return entry;
}

const Decision* LaunchTable::keep(std::unique_ptr<Decision> decision) {
  const std::lock_guard lock(mutex_);
  return decisions_.emplace_back(std::move(decision)).get();
}

void LaunchTable::forget_decisions() {
  std::vector<LaunchEntry*> all;
  {
    const std::lock_guard lock(mutex_);
    for (LaunchEntry& entry : entries_) all.push_back(&entry);
  }
  for (LaunchEntry* entry : all) {
    const std::lock_guard deciding(entry->mutex);
    entry->decision = nullptr;
    entry->settled = false;
  }
}

}  // namespace ergotune::launcher
