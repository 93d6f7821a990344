#include "capture/inject/gpu/gpu_tuned.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {
namespace {

struct Copy {
  Allocation original;
  Address copy = 0;
  std::vector<std::byte> before;
  /// Where it holds addresses of the copied memory: there the copy holds those of the copies.
  std::vector<std::size_t> addresses;
};

void check(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string(what) + " (" + std::to_string(code) + ")");
}

class BothLaunches {
 public:
  BothLaunches(const Call& call, const Tolerances& tolerances)
      : driver_(Driver::get()), call_(call), tolerances_(tolerances), arguments_(arguments_of(call)) {}
  ~BothLaunches() {
    for (const Copy& copy : copies_)
      if (copy.copy) (void)driver_.cuMemFree_v2(copy.copy);
  }
  BothLaunches(const BothLaunches&) = delete;
  BothLaunches& operator=(const BothLaunches&) = delete;

  Verification run(const Replacement& tuned, LaunchKernel* launch, OwnLaunch own) {
    Verification verification;
    copy_memory();
    verification.own = own();
    try {
      check(*verification.own, "the program's own launch failed");
      std::vector<ArgumentBytes> moved = relocated();
      std::vector<void*> others;
      for (ArgumentBytes& bytes : moved) others.push_back(bytes.data());
      check(tuned.launch(launch, call_.stream, others.data(), nullptr), "it could not be launched");
      check(driver_.cuStreamSynchronize(call_.stream), "it failed");
      compare(verification);
    } catch (const std::exception& error) {
      verification.reason = error.what();
    }
    return verification;
  }

 private:
  template <class F>
  void for_each_address(F&& visit) const {
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      for (std::size_t at = 0; at + sizeof(Address) <= arguments_[i].size(); at += sizeof(Address)) {
        const Address address = address_in(arguments_[i], at);
        if (const auto allocation = allocation_of(address)) {
          visit(i, at, address, *allocation);
        } else if (int type = 0; address >= 4096 && driver_.cuPointerGetAttribute &&
                                 driver_.cuPointerGetAttribute(&type, 2, address) == 0) {
          throw std::runtime_error("it is given memory of the host, which cannot be copied for verification");
        }
      }
  }

  void copy_memory() {
    if (arguments_.size() != parameters_of(call_.function).size() || arguments_.empty())
      throw std::runtime_error("this driver does not report its arguments, so that it cannot be verified");
    check(driver_.cuStreamSynchronize(call_.stream), "the stream cannot be waited for");
    for_each_address([&](std::size_t i, std::size_t, Address address, const Allocation& allocation) {
      roots_[address] = i;
      add(allocation);
    });
    for (std::size_t c = 0; c < copies_.size(); ++c) {  // it grows
      const auto [begin, bytes] = copies_[c].original;
      check(driver_.cuMemAlloc_v2(&copies_[c].copy, bytes), "no memory for the copies of its data");
      check(driver_.cuMemcpyDtoDAsync_v2(copies_[c].copy, begin, bytes, call_.stream), "its data cannot be copied");
      // the tuned launch would follow an address in its copies to the program's own data
      std::vector<std::byte> contents = read(begin, bytes);
      const auto note = [&](std::size_t at, Address, const Allocation& allocation) {
        copies_[c].addresses.push_back(at);
        add(allocation);
      };
      if (!search_.visit(
              contents, 0, copies_, [](const Copy& copy) { return copy.original.begin; }, note))
        throw std::runtime_error("its data hold too many addresses, so that it cannot be verified on copies");
      copies_[c].before = std::move(contents);
    }
    for (const Copy& copy : copies_) {
      if (copy.addresses.empty()) continue;
      std::vector<std::byte> contents = copy.before;
      for (const std::size_t at : copy.addresses) put(contents, at, moved(address_in(contents, at)));
      check(driver_.cuMemcpyHtoDAsync_v2(copy.copy, contents.data(), contents.size(), call_.stream),
            "its data cannot be copied");
      check(driver_.cuStreamSynchronize(call_.stream), "its data cannot be copied");
    }
  }

  void add(const Allocation& allocation) {
    for (const Copy& copy : copies_)
      if (copy.original.begin == allocation.begin) return;
    bytes_ += allocation.bytes;
    if (bytes_ > Session::get().wishes().most_bytes)
      throw std::runtime_error("its memory has " + size_text(bytes_) +
                               ", too much to copy for verification (--max-memory)");
    copies_.push_back({allocation, 0, {}, {}});
  }

  static void put(std::vector<std::byte>& bytes, std::size_t at, Address address) {
    std::memcpy(bytes.data() + at, &address, sizeof address);
  }

  /// The address in the copies.
  Address moved(Address address) const {
    for (const Copy& copy : copies_)
      if (const Address at = address - copy.original.begin; at < copy.original.bytes) return copy.copy + at;
    return address;
  }

  std::vector<std::byte> read(Address address, std::size_t bytes) const {
    std::vector<std::byte> contents(bytes);
    check(driver_.cuMemcpyDtoHAsync_v2(contents.data(), address, bytes, call_.stream), "its data cannot be read");
    check(driver_.cuStreamSynchronize(call_.stream), "its data cannot be read");
    return contents;
  }

  std::vector<ArgumentBytes> relocated() const {
    std::vector<ArgumentBytes> arguments = arguments_;
    for_each_address([&](std::size_t i, std::size_t at, Address address, const Allocation&) {
      put(arguments[i], at, moved(address));
    });
    return arguments;
  }

  void compare(Verification& verification) const {
    using Verdict = Verification::Verdict;
    verification.verdict = Verdict::unchanged;
    for (const Copy& copy : copies_) {
      const std::vector<std::byte> own = read(copy.original.begin, copy.original.bytes);
      std::vector<std::byte> tuned = read(copy.copy, copy.original.bytes);
      for (const std::size_t at : copy.addresses)
        if (const Address was = address_in(copy.before, at); address_in(tuned, at) == moved(was)) put(tuned, at, was);
      if (own != copy.before) verification.verdict = Verdict::same;
      if (own != tuned && !is_close(copy.original, own, tuned)) {
        verification.verdict = Verdict::different;
        verification.reason = "its results differ from those of the program's own launch";
        return;
      }
    }
  }

  /// Each part of an allocation by the type of the argument that points there.
  bool is_close(const Allocation& allocation, const std::vector<std::byte>& own,
                const std::vector<std::byte>& tuned) const {
    std::size_t from = 0;
    std::string type;
    const auto part_is_close = [&](std::size_t to) {
      return std::equal(own.begin() + static_cast<std::ptrdiff_t>(from), own.begin() + static_cast<std::ptrdiff_t>(to),
                        tuned.begin() + static_cast<std::ptrdiff_t>(from)) ||
             (type == "float32" && numbers_are_close<float>(own, tuned, from, to)) ||
             (type == "float64" && numbers_are_close<double>(own, tuned, from, to));
    };
    for (auto root = roots_.lower_bound(allocation.begin);
         root != roots_.end() && root->first < allocation.begin + allocation.bytes; ++root) {
      const std::size_t at = root->first - allocation.begin;
      if (!part_is_close(at)) return false;
      from = at;
      type = root->second < tolerances_.types.size() ? tolerances_.types[root->second] : std::string();
    }
    return part_is_close(own.size());
  }

  template <class T>
  bool numbers_are_close(const std::vector<std::byte>& own, const std::vector<std::byte>& tuned, std::size_t from,
                         std::size_t to) const {
    for (std::size_t at = from; at + sizeof(T) <= to; at += sizeof(T)) {
      T a{}, b{};
      std::memcpy(&a, own.data() + at, sizeof a);
      std::memcpy(&b, tuned.data() + at, sizeof b);
      const bool same = std::memcmp(&a, &b, sizeof a) == 0;
      if (!same && !(std::abs(a - b) <= std::max<double>(tolerances_.absolute, tolerances_.relative * std::abs(a))))
        return false;
    }
    return true;
  }

  const Driver& driver_;
  const Call& call_;
  const Tolerances& tolerances_;
  std::vector<ArgumentBytes> arguments_;
  std::vector<Copy> copies_;
  /// Addresses that arguments hold, and which argument.
  std::map<Address, std::size_t> roots_;
  AddressSearch search_;
  std::size_t bytes_ = 0;
};

}  // namespace

Verification verify(const Call& call, const Replacement& tuned, const Tolerances& tolerances, LaunchKernel* launch,
                    OwnLaunch own) {
  try {
    return BothLaunches(call, tolerances).run(tuned, launch, own);
  } catch (const std::exception& error) {
    return {Verification::Verdict::impossible, error.what(), std::nullopt};
  }
}

}  // namespace ergotune::inject::gpu
