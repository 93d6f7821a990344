// The helper's messages: what is written is what is read, and nothing else is read.
#include "power/helper/helper_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ergotune/random.hpp"

namespace ergotune::helper {
namespace {

const std::vector<Request> kRequests = {ListRequest{},
                                        RangeRequest{"GPU-1", ControlQuantity::power_limit_w},
                                        CoreClocksRequest{"GPU-1", 1593},
                                        AcquireRequest{"GPU-1", "ergotune tune", 30, true},
                                        SetRequest{"GPU-1", ControlQuantity::core_clock_mhz, 1410},
                                        RenewRequest{"GPU-1"},
                                        ReleaseRequest{"GPU-1"}};

TEST(HelperProtocol, EveryRequestSurvives) {
  for (const auto& request : kRequests) {
    Header header;
    const auto bytes = encode(7, 9, request);
    const auto read = decode_request(bytes, header);
    ASSERT_TRUE(read) << request.index();
    EXPECT_EQ(read->index(), request.index());
    EXPECT_EQ(header.nonce, 7u);
    EXPECT_EQ(header.sequence, 9u);
    EXPECT_EQ(encode(7, 9, *read), bytes);
  }
}

TEST(HelperProtocol, EveryAnswerSurvives) {
  ControlRange range;
  range.supported = true;
  range.values = {345, 360};
  range.low = 345;
  range.high = 360;
  range.current = 345;
  for (const Answer& answer :
       std::vector<Answer>{Hello{}, DevicesAnswer{{{"nvml:0", "GPU-1", true, "pid 1, user 2"}}}, RangeAnswer{range},
                           ClocksAnswer{{1, 2, 3}}, DoneAnswer{ControlStatus::timeout, "slow", 12}}) {
    Header header;
    const auto bytes = encode(1, 2, answer);
    const auto read = decode_answer(bytes, header);
    ASSERT_TRUE(read) << answer.index();
    EXPECT_EQ(encode(1, 2, *read), bytes);
  }
}

TEST(HelperProtocol, CutLengthenedAndForeignMessagesAreNone) {
  Header header;
  for (const auto& request : kRequests) {
    const auto bytes = encode(7, 9, request);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode_request(bytes.substr(0, length), header)) << length;
    EXPECT_FALSE(decode_request(bytes + '\0', header)) << "bytes left over";
    for (const std::size_t byte : {0, 4, 6}) {  // magic, version, type
      auto changed = bytes;
      changed[byte] = static_cast<char>(changed[byte] + 64);
      EXPECT_FALSE(decode_request(changed, header)) << byte;
    }
  }
  EXPECT_FALSE(decode_request(std::string(kMaxMessage + 1, 'x'), header));
}

TEST(HelperProtocol, HoweverMuchThereIsToSayItFitsAMessage) {
  Header header;
  DevicesAnswer devices;
  const std::string text(3000, 'i');
  devices.devices.assign(200, {text, text, true, text});
  ControlRange range;
  range.values.assign(5000, 1410);
  for (const Answer& answer : std::vector<Answer>{devices, RangeAnswer{range}, ClocksAnswer{range.values},
                                                  DoneAnswer{ControlStatus::failed, std::string(9000, 'm'), 0}}) {
    const auto bytes = encode(1, 2, answer);
    EXPECT_LE(bytes.size(), kMaxMessage) << answer.index();
    EXPECT_TRUE(decode_answer(bytes, header)) << answer.index();
  }
  const Request request = AcquireRequest{"GPU-1", std::string(9000, 'c'), 30, true};
  EXPECT_TRUE(decode_request(encode(7, 9, request), header));
}

TEST(HelperProtocol, ChangedBytesNeverCrashAndDecodeOnlyToWhatCouldBeEncoded) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    auto bytes = encode(7, 9, kRequests[random.below(kRequests.size())]);
    for (int i = 0; i < 4; ++i) bytes[random.below(bytes.size())] = static_cast<char>(random());
    Header header;
    if (const auto request = decode_request(bytes, header))
      RC_ASSERT(encode(header.nonce, header.sequence, *request) == bytes);
  }));
}

}  // namespace
}  // namespace ergotune::helper
