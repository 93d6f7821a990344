#include "search/heuristics/population.hpp"

#include <algorithm>

namespace ergotune::search {

Population::Population(std::string name, const StrategyContext& context)
    : StrategyBase(std::move(name), context), moves_(space()) {}

std::size_t Population::population() const {
  // small budgets get smaller populations: at least five generations
  auto size = static_cast<std::size_t>(integer("population"));
  if (context().budget > 0) size = std::min<std::size_t>(size, std::max<std::uint64_t>(6, context().budget / 5));
  return std::max<std::size_t>(4, size);
}

Member Population::member_at(std::vector<double> point, ConfigurationIndex from) {
  for (std::size_t p = 0; p < point.size(); ++p)
    point[p] = std::clamp(point[p], -0.49, static_cast<double>(moves_.count(p)) - 0.51);
  Member member;
  member.index = moves_.towards(from, point, random());
  member.point = std::move(point);
  return member;
}

Member Population::member_of(ConfigurationIndex index) { return {moves_.point(index), index, value(index)}; }

bool Population::all_known(const std::vector<Member>& list) const {
  return std::all_of(list.begin(), list.end(), [&](const Member& m) { return memory().known(m.index); });
}

void Population::settle(std::vector<Member>& list) {
  for (Member& member : list) member.value = value(member.index);
}

void Population::advance(std::size_t) {
  if (!begun_) {
    begun_ = true;
    for (const ConfigurationIndex index : space().latin_hypercube(population(), random()))
      members_.push_back(member_of(index));
    for (const Member& member : members_) propose(member.index);
    if (queued() > 0) return;
  }
  constexpr int kIdleLimit = 5;
  for (int turn = 0; turn < kIdleLimit; ++turn) {
    if (!offspring_.empty()) {
      if (!all_known(offspring_)) return;  // the base class requests random configurations in the meantime
      settle(offspring_);
      select(members_, offspring_);
      offspring_.clear();
    }
    settle(members_);
    // A generation of known configurations only: random new ones replace the worst.
    if (turn > 0 && memory().fresh_count() > 0) {
      const auto worst =
          std::max_element(members_.begin(), members_.end(), [](auto& a, auto& b) { return a.value < b.value; });
      *worst = member_of(*memory().random_fresh(random()));
      if (propose(worst->index)) return;
    }
    offspring_ = breed();
    for (const Member& member : offspring_) propose(member.index);
    if (queued() > 0) return;
  }
}

Member Population::child_of(const Member& a, const Member& b) {
  std::vector<std::uint32_t> child;
  for (std::size_t p = 0; p < moves_.dimensions(); ++p)
    child.push_back(static_cast<std::uint32_t>(random().chance(0.5) ? a.point[p] : b.point[p]));
  ConfigurationIndex index = moves_.towards(a.index, std::span<const std::uint32_t>(child), random());
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (attempt > 0 || random().chance(real("mutation")))
      index = random().chance(0.5) ? moves_.random_adjacent(index, random()) : moves_.random_neighbour(index, random());
    if (!memory().known(index)) break;
  }
  return member_of(index);
}

}  // namespace ergotune::search
