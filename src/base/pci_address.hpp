// Normal form of PCI addresses, by which devices and sensors are matched. Drivers write domains with 4 or 8 digits, in
// either case, with or without function.
#pragma once

#include <string>
#include <string_view>

namespace ergotune {

/// Returns "00000000:1b:00.0" (lower case) for "0000:1B:00.0", "1b:00.0", "00000000:1B:00.0" or "1b:00"; empty for an
/// invalid address.
std::string normalise_pci_address(std::string_view address);

}  // namespace ergotune
