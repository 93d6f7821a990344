#include "power/powersensor/powersensor_stream.hpp"

#include <algorithm>

namespace ergotune {

void Powersensor3Decoder::feed(std::span<const unsigned char> bytes, std::vector<Sample>& out) {
  for (const unsigned char byte : bytes) {
    if (!first_) {
      if (byte & 0x80)
        first_ = byte;
      else
        ++dropped_bytes_;  // a second byte whose first one was lost
      continue;
    }
    if (byte & 0x80) {  // two first bytes in a row: the second byte of the first item was lost
      ++dropped_bytes_;
      first_ = byte;
      continue;
    }
    const unsigned id = (*first_ >> 4) & 7, level = ((*first_ & 15u) << 6) | (byte & 63u);
    first_.reset();
    item(id, level, (byte & 0x40) != 0, out);
  }
}

void Powersensor3Decoder::item(unsigned id, unsigned level, bool flag, std::vector<Sample>& out) {
  if (id == 7 && flag) {
    if (stamp_) microseconds_ += (level - *stamp_) & 1023;
    stamp_ = level;
    in_frame_ = true;
    marker_ = false;
    seen_ = 0;
    return;
  }
  if (!in_frame_) return;
  levels_[id] = level;
  seen_ |= 1u << id;
  if (id == 0) marker_ = flag;
  if (id == 7) finish(out);
}

void Powersensor3Decoder::finish(std::vector<Sample>& out) {
  in_frame_ = false;
  Sample sample;
  sample.device_seconds = static_cast<double>(microseconds_) * 1e-6;
  sample.marker = marker_;
  const auto value = [&](unsigned channel) {
    const auto& c = channels_[channel];
    return (3.3 * levels_[channel] / 1023 - static_cast<double>(c.reference)) / static_cast<double>(c.sensitivity);
  };
  for (unsigned pair = 0; pair < 4; ++pair) {
    if (!channels_[2 * pair].in_use || !channels_[2 * pair + 1].in_use) continue;
    const unsigned needed = 3u << (2 * pair);
    if ((seen_ & needed) != needed) return;  // a channel is missing
    sample.watts += value(2 * pair) * value(2 * pair + 1);
  }
  out.push_back(sample);
}

double ClockAnchor::host_time(double device_seconds, double arrival) {
  const double delay = arrival - device_seconds;
  if (!started_) {
    started_ = true;
    offset_ = least_ = delay;
    window_end_ = arrival + kWindow;
  }
  least_ = std::min(least_, delay);
  if (first_window_) offset_ = least_;
  if (arrival >= window_end_) {
    offset_ = least_;
    first_window_ = false;
    least_ = delay;
    window_end_ = arrival + kWindow;
  }
  return device_seconds + offset_;
}

void Powersensor2Decoder::feed(std::span<const unsigned char> bytes, std::vector<Sample>& out) {
  for (const unsigned char byte : bytes) {
    if (!first_) {
      first_ = byte;
      continue;
    }
    const unsigned id = *first_ >> 5;
    if (id < 5 && (byte & 0xE0) == 0xE0) {
      const unsigned level = ((*first_ & 31u) << 5) | (byte & 31u);
      if (sensors_[id].in_use()) out.push_back({id, sensors_[id].watts(level)});
      first_.reset();
    } else {
      ++dropped_bytes_;
      first_ = byte;
    }
  }
}

}  // namespace ergotune
