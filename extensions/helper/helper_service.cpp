#include "helper/helper_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"

namespace ergotune::helper {
namespace {

// One line of the audit log is one event: text from clients must not start another line.
std::string printable(const std::string& text) {
  std::string clean = text.substr(0, 200);
  for (char& c : clean)
    if (!std::isprint(static_cast<unsigned char>(c))) c = '?';
  return clean;
}

std::string describe(const Peer& peer) { return fmt::format("pid {}, user {}", peer.pid, peer.uid); }

DoneAnswer refuse(ControlStatus status, std::string message) { return {status, std::move(message)}; }

}  // namespace

Devices Devices::of(const ControlEnvironment& environment) {
  return {[environment] { return list_controls(environment); },
          [environment](const std::string& id) { return open_control(id, environment); },
          [](std::unique_ptr<Control> control, const ControlSessionOptions& options) {
            return ControlSession::open(std::move(control), options);
          }};
}

Service::Service(Policy policy, Devices devices, Log audit)
    : policy_(std::move(policy)), devices_(std::move(devices)), log_(std::move(audit)) {}

Service::~Service() {
  while (!leases_.empty()) end(leases_.begin()->first, "the helper stops");
}

void Service::audit(const Client& client, const std::string& what) {
  log_(fmt::format("uid {} pid {}: {}", client.peer.uid, client.peer.pid, printable(what)));
}

void Service::refused(uid_t uid, const std::string& what, double now) {
  auto& bucket = refusals_[uid];
  bucket.allowance =
      std::min(kRefusalBurst, bucket.allowance + std::max(0.0, now - bucket.filled_at) * kRefusalsPerSecond);
  bucket.filled_at = now;
  if (bucket.allowance < 1) {
    ++bucket.left_out;
    return;
  }
  bucket.allowance -= 1;
  log_(fmt::format("uid {}: refused: {}{}", uid, printable(what),
                   bucket.left_out == 0 ? "" : fmt::format(" (and {} more before it)", bucket.left_out)));
  bucket.left_out = 0;
}

void Service::audit_refusal(const Client& client, const std::string& what, double now) {
  refused(client.peer.uid, fmt::format("pid {}: {}", client.peer.pid, what), now);
}

void Service::set_policy(Policy policy) {
  policy_ = std::move(policy);
  std::vector<std::string> over;
  for (auto& [key, lease] : leases_) {
    const auto client = clients_.find(lease.client);
    const Rule* rule = client == clients_.end() ? nullptr : policy_.rule_for(client->second.peer, lease.id, key);
    bool within = rule != nullptr;
    if (rule)
      for (const auto& [quantity, value] : lease.session->current())
        within =
            within &&
            check_value(quantity, clamp_range(lease.session->control().range(quantity), *rule, quantity), value).ok();
    if (!within) {
      over.push_back(key);
      continue;
    }
    lease.rule = *rule;
    lease.lifetime = std::min(lease.lifetime, policy_.lease_seconds);
  }
  for (const auto& key : over) end(key, "the policy does not allow it any more");
}

bool Service::holds_lease(std::uint64_t client) const {
  return std::ranges::any_of(leases_, [&](const auto& entry) { return entry.second.client == client; });
}

void Service::look_for_devices() {
  std::vector<std::string> ids = devices_.list();
  std::erase_if(known_, [&](const Known& known) { return std::ranges::find(ids, known.id) == ids.end(); });
  for (const auto& id : ids) {
    if (std::ranges::any_of(known_, [&](const Known& known) { return known.id == id; })) continue;
    try {
      auto control = devices_.open(id);
      known_.push_back({id, control->device_key(), std::move(control)});
    } catch (const std::exception&) {
      // A device that cannot be opened is not listed.
    }
  }
}

Service::Known* Service::find(const std::string& name) {
  if (known_.empty()) look_for_devices();
  for (auto& known : known_)
    if (known.id == name || known.key == name) return &known;
  return nullptr;
}

std::uint64_t Service::connect(const Peer& peer, std::uint64_t nonce, std::string& hello) {
  const auto number = next_client_++;
  clients_[number] = {peer, nonce, 0};
  hello = encode(nonce, 0, Answer(Hello{}));
  return number;
}

std::string Service::handle(std::uint64_t number, std::string_view bytes, double now) {
  const auto found = clients_.find(number);
  if (found == clients_.end()) return {};
  auto& client = found->second;
  Header header;
  const auto request = decode_request(bytes, header);
  if (!request) {
    audit_refusal(client, fmt::format("{} bytes that are not a request", bytes.size()), now);
    return {};
  }
  if (header.nonce != client.nonce || header.sequence != client.last_sequence + 1) {
    audit_refusal(client, "a replayed or reordered request", now);
    return {};
  }
  client.last_sequence = header.sequence;
  expire(now);
  client.allowance = std::min(kRequestBurst, client.allowance + (now - client.filled_at) * kRequestsPerSecond);
  client.filled_at = now;
  const double cost = std::holds_alternative<AcquireRequest>(*request) ? kAcquireCost : 1;
  if (client.allowance < cost)
    return encode(client.nonce, header.sequence,
                  Answer(refuse(ControlStatus::timeout, "too many requests: try again later")));
  client.allowance -= cost;
  Answer reply = std::visit([&](const auto& message) { return answer(number, client, message, now); }, *request);
  return encode(client.nonce, header.sequence, reply);
}

Answer Service::answer(std::uint64_t, Client& client, const ListRequest&, double) {
  look_for_devices();
  DevicesAnswer list;
  for (const auto& known : known_) {
    Device device{known.id, known.key, policy_.rule_for(client.peer, known.id, known.key) != nullptr, {}};
    if (const auto held = leases_.find(known.key); held != leases_.end()) {
      device.holder = describe(clients_[held->second.client].peer);
      for (const auto& [quantity, value] : held->second.session->current())
        device.holder += fmt::format(", {} {:g}", to_string(quantity), value);
    }
    list.devices.push_back(std::move(device));
  }
  return list;
}

Answer Service::answer(std::uint64_t, Client& client, const RangeRequest& request, double) {
  const auto* known = find(request.device);
  const Rule* rule = known ? policy_.rule_for(client.peer, known->id, known->key) : nullptr;
  if (!rule) return RangeAnswer{};
  return RangeAnswer{clamp_range(known->control->range(request.quantity), *rule, request.quantity)};
}

Answer Service::answer(std::uint64_t, Client& client, const CoreClocksRequest& request, double) {
  const auto* known = find(request.device);
  const Rule* rule = known ? policy_.rule_for(client.peer, known->id, known->key) : nullptr;
  if (!rule) return ClocksAnswer{};
  ControlRange range;
  range.supported = true;
  range.values = known->control->core_clocks_at(request.memory_clock_mhz);
  return ClocksAnswer{clamp_range(range, *rule, ControlQuantity::core_clock_mhz).values};
}

Answer Service::answer(std::uint64_t number, Client& client, const AcquireRequest& request, double now) {
  auto* known = find(request.device);
  if (!known) return refuse(ControlStatus::invalid_value, "the helper knows no such device");
  const Rule* rule = policy_.rule_for(client.peer, known->id, known->key);
  if (!rule) {
    audit_refusal(client, fmt::format("{} is not in the policy for this user", known->id), now);
    return refuse(ControlStatus::no_permission,
                  fmt::format("the helper's policy does not let user {} set clocks of {}", client.peer.uid, known->id));
  }
  if (request.take_over && !rule->take_over) {
    audit_refusal(client, fmt::format("taking over {}", known->id), now);
    return refuse(ControlStatus::no_permission, "the helper's policy does not allow --take-over");
  }
  if (const auto held = leases_.find(known->key); held != leases_.end()) {
    const std::string holder = describe(clients_[held->second.client].peer);
    audit_refusal(client, fmt::format("{} is leased to {}", known->id, holder), now);
    return refuse(ControlStatus::no_permission, fmt::format("{} is in use by another session ({})", known->id, holder));
  }
  UserLeases& mine = user_leases_[client.peer.uid];
  mine.allowance = std::min(kLeaseBurst, mine.allowance + std::max(0.0, now - mine.filled_at) * kLeasesPerSecond);
  mine.filled_at = now;
  if (mine.allowance < 1) {
    audit_refusal(client, fmt::format("too many leases of {}", known->id), now);
    return refuse(ControlStatus::timeout,
                  fmt::format("more than {:g} leases a second: try again later", kLeasesPerSecond));
  }
  mine.allowance -= 1;
  Lease lease;
  try {
    ControlSessionOptions options;
    options.take_over = request.take_over;
    options.command = fmt::format("{} (pid {}, user {}, through ergotuned)", printable(request.command),
                                  client.peer.pid, client.peer.uid);
    options.wait_for_guardian = 2;
    lease.session = devices_.start(devices_.open(known->id), options);
  } catch (const std::exception& error) {
    audit_refusal(client, error.what(), now);
    return refuse(ControlStatus::failed, error.what());
  }
  lease.client = number;
  lease.id = known->id;
  lease.rule = *rule;
  lease.lifetime =
      request.seconds > 0 ? std::min<double>(request.seconds, policy_.lease_seconds) : policy_.lease_seconds;
  lease.until = now + lease.lifetime;
  lease.allowance = policy_.burst;
  lease.filled_at = now;
  const double lifetime = lease.lifetime;
  leases_[known->key] = std::move(lease);
  audit(client, fmt::format("lease of {} for {:g} s: {}", known->id, lifetime, request.command));
  return DoneAnswer{ControlStatus::ok, "", lifetime};
}

Service::Lease* Service::lease_of(std::uint64_t number, const std::string& device, DoneAnswer& refusal) {
  const auto* known = find(device);
  const auto held = known ? leases_.find(known->key) : leases_.end();
  if (held != leases_.end() && held->second.client == number) return &held->second;
  refusal = refuse(ControlStatus::no_permission,
                   "there is no lease of this device (it may have run out): its settings were restored");
  return nullptr;
}

Answer Service::answer(std::uint64_t number, Client& client, const SetRequest& request, double now) {
  DoneAnswer refusal;
  auto* lease = lease_of(number, request.device, refusal);
  if (!lease) return refusal;
  lease->until = now + lease->lifetime;
  lease->allowance = std::min(policy_.burst, lease->allowance + (now - lease->filled_at) * policy_.changes_per_second);
  lease->filled_at = now;
  if (lease->allowance < 1)
    return refuse(ControlStatus::timeout,
                  fmt::format("more than {:g} changes a second: try again later", policy_.changes_per_second));
  lease->allowance -= 1;
  const auto range = clamp_range(lease->session->control().range(request.quantity), lease->rule, request.quantity);
  if (!range.supported)
    return refuse(ControlStatus::no_permission,
                  fmt::format("the {} of {} cannot be set through the helper (device or policy)",
                              quantity_description(request.quantity), lease->id));
  auto result = check_value(request.quantity, range, request.value);
  if (result.ok()) {
    if (!lease->session->check().ok()) lease->session->doubt();  // another process has changed it: set it again
    // use the nearest listed value: only values of the policy's range reach the device
    result = lease->session->set(request.quantity,
                                 range.values.empty() ? request.value : nearest_value(range, request.value));
  } else {
    result.message += " within the helper's policy";
  }
  audit(client, fmt::format("set {} of {} to {:g}: {}{}", to_string(request.quantity), lease->id, request.value,
                            to_string(result.status), result.ok() ? "" : " (" + result.message + ")"));
  return DoneAnswer{result.status, result.message, lease->lifetime};
}

Answer Service::answer(std::uint64_t number, Client&, const RenewRequest& request, double now) {
  DoneAnswer refusal;
  auto* lease = lease_of(number, request.device, refusal);
  if (!lease) return refusal;
  lease->until = now + lease->lifetime;
  const auto set = lease->session->check();
  return DoneAnswer{set.status, set.message, lease->lifetime};
}

Answer Service::answer(std::uint64_t number, Client& client, const ReleaseRequest& request, double) {
  DoneAnswer refusal;
  auto* lease = lease_of(number, request.device, refusal);
  if (!lease) return refusal;
  const auto report = lease->session->finish();
  audit(client, fmt::format("release of {}: {}", lease->id, report.complete ? "restored" : report.summary));
  leases_.erase(find(request.device)->key);
  if (report.complete) return DoneAnswer{};
  return refuse(ControlStatus::failed, report.summary);
}

void Service::end(const std::string& key, const std::string& why) {
  const auto found = leases_.find(key);
  if (found == leases_.end()) return;
  const auto report = found->second.session->finish();
  const auto client = clients_.find(found->second.client);
  audit(client == clients_.end() ? Client{} : client->second,
        fmt::format("end of the lease of {} ({}): {}", found->second.id, why,
                    report.complete ? "restored" : report.summary));
  leases_.erase(found);
}

void Service::disconnect(std::uint64_t client) {
  std::vector<std::string> keys;
  for (const auto& [key, lease] : leases_)
    if (lease.client == client) keys.push_back(key);
  for (const auto& key : keys) end(key, "the client has gone");
  clients_.erase(client);
}

void Service::expire(double now) {
  std::vector<std::string> keys;
  for (const auto& [key, lease] : leases_)
    if (lease.until <= now) keys.push_back(key);
  for (const auto& key : keys) end(key, "its time is up");
}

double Service::next_expiry(double now) const {
  if (leases_.empty()) return -1;
  double next = INFINITY;
  for (const auto& [key, lease] : leases_) next = std::min(next, lease.until - now);
  return std::max(0.0, next);
}

}  // namespace ergotune::helper
