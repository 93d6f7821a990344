// PCI addresses in one form: how devices meet their sensors. Drivers write them with 4 or 8 digits of domain,
// in either case, with or without function.
#pragma once

#include <string>
#include <string_view>

namespace ergotune {

/// "00000000:1b:00.0" in lower case from "0000:1B:00.0", "1b:00.0", "00000000:1B:00.0", "1b:00"; empty when
/// it is none.
std::string normalise_pci_address(std::string_view address);

}  // namespace ergotune
