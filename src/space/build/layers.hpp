// What the builder finds for one component (parameters tied together by restrictions), before it becomes a
// diagram.
#pragma once

#include <cstdint>
#include <vector>

namespace ergotune {

/// The states that prefixes of l values can be in, and what each leads to. States that choose alike share a
/// key: a list of values and, for each, one of a few slots; a state says which next state each slot is. State
/// 0 of layer 0 is the start; the last layer leads to state 0, the end.
struct Layer {
  std::vector<std::uint32_t> first_choice;  ///< of each key, and one past the last
  std::vector<std::uint32_t> position;      ///< of each choice: the value's position in its parameter's list, ascending
  std::vector<std::uint32_t> slot;          ///< of each choice; empty when every choice of a key is a slot of its own
  std::vector<std::uint32_t> slots;         ///< of each key: how many
  std::vector<std::uint32_t> key;           ///< of each state; empty when every state is its own key
  std::vector<std::uint32_t> next;          ///< of each state, slot by slot: the state in the next layer

  std::size_t keys() const { return slots.size(); }
  std::size_t states() const { return key.empty() ? slots.size() : key.size(); }
  std::uint32_t slot_of(std::uint32_t key, std::uint32_t choice) const {
    return slot.empty() ? choice - first_choice[key] : slot[choice];
  }
  std::uint32_t key_of(std::size_t state) const { return key.empty() ? static_cast<std::uint32_t>(state) : key[state]; }
};
using Layers = std::vector<Layer>;

}  // namespace ergotune
