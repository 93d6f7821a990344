#include "tune/ledger/fair_source.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace ergotune {

std::vector<ConfigurationRequest> FairSource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  const double now = host_seconds();
  if (reference_ && now - looked_at_ >= std::min(kLook, every_ / 4)) {
    looked_at_ = now;
    for (const DeviceShare& board : ledger_.evaluator().boards()) {
      const auto measured = measured_at_.find(board.board);
      if (board.lost || (measured != measured_at_.end() && now - measured->second < every_)) continue;
      measured_at_[board.board] = now;
      ConfigurationRequest wanted;
      wanted.index = *reference_;
      wanted.kind = RowKind::reference;
      wanted.board = board.board;
      list.push_back(std::move(wanted));
    }
  }
  if (list.size() >= room) return list;
  std::vector<ConfigurationRequest> searched = search_.next(room - list.size());
  for (ConfigurationRequest& wanted : searched) list.push_back(std::move(wanted));
  return list;
}

void FairSource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  if (wanted.kind != RowKind::reference) search_.take(wanted, measurement, fresh);
}

}  // namespace ergotune
