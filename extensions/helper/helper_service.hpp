// ergotuned without its socket: leases, limits, and what each message does. One Connection per client; the
// caller says what time it is.
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

/// What the daemon works on; tests and the fuzzer give their own.
struct Devices {
  std::function<std::vector<std::string>()> list;
  std::function<std::unique_ptr<Control>(const std::string& id)> open;
  std::function<std::unique_ptr<ControlSession>(std::unique_ptr<Control>, const ControlSessionOptions&)> start;
  /// Below this root, with this NVML library, and journals in this folder.
  static Devices of(const ControlEnvironment& environment);
};

class Service {
 public:
  using Log = std::function<void(const std::string& line)>;
  Service(Policy policy, Devices devices, Log audit);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// A client has come. Returns its number; `hello` is to be sent to it.
  std::uint64_t connect(const Peer& peer, std::uint64_t nonce, std::string& hello);
  /// A packet from it. Returns the answer; empty: the client broke the protocol, close the connection.
  std::string handle(std::uint64_t client, std::string_view bytes, double now);
  /// It has gone: its leases end and everything is put back.
  void disconnect(std::uint64_t client);
  /// Ends leases whose time is up.
  void expire(double now);
  /// Seconds until the next lease ends, from `now`; negative when there is none.
  double next_expiry(double now) const;
  /// Leases in force.
  std::size_t leases() const { return leases_.size(); }
  /// What it does not allow any more ends at once and is put back.
  void set_policy(Policy policy);
  /// Whether a client has a lease.
  bool holds_lease(std::uint64_t client) const;
  /// Notes a refusal of something that is no request of a client's. Like all refusals it is logged as long as there
  /// are few: a client without rights must not fill it.
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
  static constexpr double kAcquireCost = 20;  // a lease starts a process
  static constexpr double kLeaseBurst = 30, kLeasesPerSecond = 2;
  struct Lease {
    std::uint64_t client = 0;
    std::string id;
    std::unique_ptr<ControlSession> session;
    Rule rule;  // as it was when the lease was given
    double lifetime = 0, until = 0;
    double allowance = 0, filled_at = 0;  // changes that may be made now (token bucket)
  };
  struct Known {
    std::string id, key;
    std::unique_ptr<Control> control;  // for reading only
  };

  Answer answer(std::uint64_t number, Client& client, const ListRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const RangeRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const CoreClocksRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const AcquireRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const SetRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const RenewRequest&, double now);
  Answer answer(std::uint64_t number, Client& client, const ReleaseRequest&, double now);

  /// By id or key, among what the hardware lists; nullptr when there is none. Nothing a client names is ever
  /// opened.
  Known* find(const std::string& name);
  /// The client's lease of a device, or nullptr with the refusal.
  Lease* lease_of(std::uint64_t number, const std::string& device, DoneAnswer& refusal);
  void end(const std::string& key, const std::string& why);
  void audit(const Client& client, const std::string& what);
  void audit_refusal(const Client& client, const std::string& what, double now);
  void look_for_devices();

  /// Lines about one user's refusals (token bucket), and those that were left out since the last.
  struct Refusals {
    double allowance = kRefusalBurst, filled_at = 0;
    std::uint64_t left_out = 0;
  };
  /// Leases that one user may still take, over however many connections (token bucket).
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
