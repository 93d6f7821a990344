// ergotuned without its socket: leases, limits, and the handling of messages. One Client per connection; the caller
// provides the time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "helper/helper_policy.hpp"
#include "power/guardian/guardian.hpp"
#include "power/helper/helper_protocol.hpp"

namespace ergotune::helper {

/// Access to the devices; tests and the fuzzer provide their own.
struct Devices {
  std::function<std::vector<std::string>()> list;
  std::function<std::unique_ptr<Control>(const std::string& id)> open;
  std::function<std::unique_ptr<ControlSession>(std::unique_ptr<Control>, const ControlSessionOptions&)> start;
  /// Devices below the environment's root, with its NVML library and its folder of journals.
  static Devices of(const ControlEnvironment& environment);
};

class Service {
 public:
  using Log = std::function<void(const std::string& line)>;
  Service(Policy policy, Devices devices, Log audit);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Registers a client and returns its number; `hello` receives the message to send to it.
  std::uint64_t connect(const Peer& peer, std::uint64_t nonce, std::string& hello);
  /// Handles a packet of a client. Returns the answer; empty: the client violated the protocol, close the connection.
  std::string handle(std::uint64_t client, std::string_view bytes, double now);
  /// Removes a client; its leases end and all settings are restored.
  void disconnect(std::uint64_t client);
  /// Ends expired leases.
  void expire(double now);
  /// Seconds from `now` until the next lease expires; negative if there is none.
  double next_expiry(double now) const;
  /// Number of leases in force.
  std::size_t leases() const { return leases_.size(); }
  /// Replaces the policy; leases that it no longer allows end at once, and their settings are restored.
  void set_policy(Policy policy);
  /// Whether a client has a lease.
  bool holds_lease(std::uint64_t client) const;
  /// Logs a refusal that is not an answer to a client's request. Refusals are logged at a limited rate, so that a
  /// client without rights cannot fill the log.
  void refused(uid_t uid, const std::string& what, double now);
  static constexpr std::size_t kMaxClients = 64;
  std::size_t clients() const { return clients_.size(); }

 private:
  struct Client {
    Peer peer;
    std::uint64_t nonce = 0, last_sequence = 0;
    double allowance = kRequestBurst, filled_at = 0;  // requests that may be made now (token bucket)
  };
  static constexpr double kRequestBurst = 200, kRequestsPerSecond = 100;
  static constexpr double kAcquireCost = 20;  // acquiring a lease starts a process
  static constexpr double kLeaseBurst = 30, kLeasesPerSecond = 2;
  struct Lease {
    std::uint64_t client = 0;
    std::string id;
    std::unique_ptr<ControlSession> session;
    Rule rule;  // at the time of the lease
    double lifetime = 0, until = 0;
    double allowance = 0, filled_at = 0;  // changes that may be made now (token bucket)
  };
  struct Known {
    std::string id, key;
    std::unique_ptr<Control> control;  // used for reading only
  };

  Answer answer(std::uint64_t number, Client& client, const ListRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const RangeRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const CoreClocksRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const AcquireRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const SetRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const RenewRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const ReleaseRequest&, double now);

  /// Finds a device by id or key among those that the hardware lists; nullptr if there is none. Nothing named by a
  /// client is ever opened.
  Known* find(const std::string& name);
  /// The client's lease of a device; nullptr with the refusal if it has none.
  Lease* lease_of(std::uint64_t number, const std::string& device, DoneAnswer& refusal);
  void end(const std::string& key, const std::string& why);
  void audit(const Client& client, const std::string& what);
  void audit_refusal(const Client& client, const std::string& what, double now);
  void look_for_devices();

  /// Budget of log lines for one user's refusals (token bucket), and the number of lines left out since the last.
  struct Refusals {
    double allowance = kRefusalBurst, filled_at = 0;
    std::uint64_t left_out = 0;
  };
  /// Leases that one user may still acquire, over all connections (token bucket).
  struct UserLeases {
    double allowance = kLeaseBurst, filled_at = 0;
  };
  static constexpr double kRefusalBurst = 20, kRefusalsPerSecond = 0.1;

  Policy policy_;
  Devices devices_;
  Log log_;
  std::map<uid_t, Refusals> refusals_;
  std::map<uid_t, UserLeases> user_leases_;
  std::vector<Known> known_;
  std::map<std::uint64_t, Client> clients_;
  std::map<std::string, Lease> leases_;  // by device key
  std::uint64_t next_client_ = 1;
};

}  // namespace ergotune::helper
