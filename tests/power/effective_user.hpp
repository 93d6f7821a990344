// Somebody who is not root, for tests of what the rights of a file allow. A test that runs as root becomes nobody for a
// while; one that does not is somebody already.
#pragma once

#include <unistd.h>

#include <stdexcept>

namespace ergotune {

class EffectiveUser {
 public:
  EffectiveUser() : was_(::geteuid()) {
    constexpr uid_t kNobody = 65534;
    if (was_ == 0 && ::seteuid(kNobody) != 0) throw std::runtime_error("cannot become nobody");
  }
  ~EffectiveUser() {
    if (::seteuid(was_) != 0) ::_exit(1);  // what comes after would be somebody else's test
  }
  EffectiveUser(const EffectiveUser&) = delete;
  EffectiveUser& operator=(const EffectiveUser&) = delete;

 private:
  uid_t was_;
};

}  // namespace ergotune
