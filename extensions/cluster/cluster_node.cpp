#include "cluster/cluster_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

using namespace agents;

namespace {

constexpr std::size_t kUnsent = std::size_t{8} << 20;  ///< largest number of unsent bytes of inputs to one node
constexpr double kLongestRetry = 300;                  ///< s

}  // namespace

void ClusterNode::start(const Open& open) {
  started_at_ = host_seconds();
  late_ = false;
  wanted_.clear();
  transport_ = start_();
  phase_ = Phase::greeting;
  stream().post(open);
}

void ClusterNode::greet(const std::string& name) {
  name_ = name;
  phase_ = Phase::opening;
}

void ClusterNode::open(const Opened& opened, std::size_t life) {
  phase_ = Phase::ready;
  attempts_ = 0;
  ready_at_ = host_seconds();
  life_ = life;
  room_ = std::min<std::size_t>(std::max<std::uint64_t>(1, opened.capacity), 100000);
  devices_.clear();
  renamed_.clear();
  for (Share& share : shares_) share.total.lost = true;
  for (const DeviceInfo& device : opened.devices) {
    const std::string id = fmt::format("{}/{}", name(), device.id), ours = device.uuid.empty() ? id : device.uuid;
    renamed_[gpu_of(device)] = ours;
    devices_.push_back(ours);
    const auto former = std::ranges::find_if(shares_, [&](const Share& share) { return share.total.gpu == ours; });
    if (former == shares_.end()) {
      shares_.push_back({{ours, id, device.name, 0, 0, 0, false}, 0});
    } else {
      former->total.lost = false;
    }
  }
}

void ClusterNode::want(const std::vector<std::string>& hashes) {
  wanted_.assign(hashes.begin(), hashes.end());
  offset_ = 0;
}

void ClusterNode::feed(const NodeInputs& inputs) {
  while (!wanted_.empty() && stream().unsent() < kUnsent) {
    const std::string hash = wanted_.front();
    Piece piece{hash, inputs.read(hash, offset_, kPiece), false};
    offset_ += piece.bytes.size();
    piece.last = offset_ >= inputs.size(hash);
    if (piece.last) {
      wanted_.pop_front();
      offset_ = 0;
    }
    stream().post(piece);
  }
}

std::string ClusterNode::keep_alive(double silence) {
  const double now = host_seconds();
  stream().flush();
  if (now - stream().sent_at() >= silence / 6) stream().post(Heartbeat{});
  if (stream().ended()) return "its agent ended";
  if (phase_ == Phase::greeting && now - started_at_ > kStartSilences * silence)
    return fmt::format("its agent did not start within {:g} s", kStartSilences * silence);
  if (phase_ != Phase::greeting && now - stream().heard_at() > silence)
    return fmt::format("it sent nothing for {:g} s", silence);
  return {};
}

bool ClusterNode::is_late(double silence) {
  return phase_ == Phase::greeting && host_seconds() - started_at_ > silence && !std::exchange(late_, true);
}

ProcessEnding ClusterNode::lose(double retry, bool for_good) {
  const bool served = ready();
  if (served) {
    for (Share& share : shares_)
      if (!share.total.lost) share.served += host_seconds() - ready_at_;
  }
  attempts_ = served ? 1 : attempts_ + 1;
  served_ = served_ || served;
  const bool given_up = for_good || retired_ || attempts_ >= (served_ ? kAttempts : kFirstAttempts);
  phase_ = given_up ? Phase::given_up : Phase::away;
  start_at_ = host_seconds() + std::min(kLongestRetry, retry * std::pow(2, attempts_ - 1));
  const auto transport = std::exchange(transport_, nullptr);
  return transport ? transport->end() : ProcessEnding{};
}

void ClusterNode::retire() {
  retired_ = true;
  phase_ = transport_ ? phase_ : Phase::given_up;
}

void ClusterNode::restore() {
  retired_ = false;
  attempts_ = 0;
  phase_ = Phase::away;
}

std::string ClusterNode::result_device_name(const std::string& own) const {
  const auto found = renamed_.find(own);
  return found == renamed_.end() ? std::string() : found->second;
}

std::string ClusterNode::node_device_name(const std::string& ours) const {
  for (const auto& [own, name] : renamed_)
    if (name == ours) return own;
  return ours;
}

void ClusterNode::count(const std::string& result_device_name, const Measurement& measurement) {
  for (Share& share : shares_) {
    if (result_device_name.empty() || share.total.gpu != result_device_name) continue;
    ++share.total.results;
    share.total.busy_seconds += measurement.verify_seconds + measurement.measure_seconds;
  }
}

std::vector<DeviceShare> ClusterNode::shares() const {
  std::vector<DeviceShare> shares;
  for (const Share& share : shares_) {
    DeviceShare& one = shares.emplace_back(share.total);
    one.lost = one.lost || !ready();
    const double served = share.served + (one.lost ? 0 : host_seconds() - ready_at_);
    one.idle_seconds = std::max(0.0, served - one.busy_seconds);
  }
  return shares;
}

}  // namespace ergotune
