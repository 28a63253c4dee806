// Trackers: the contract, for ours and for one that a user wrote.
#include <checkrow/trackers/bitmap.hpp>

#include "own_policies.hpp"
#include "tracker_contract.hpp"

using namespace checkrow;

TEST_CASE("bitmap keeps the tracker contract", "[tracker]") {
  tracker_contract::check_tracker_contract<bitmap>();
}

TEST_CASE("a user's tracker is held to the same contract", "[tracker]") {
  tracker_contract::check_tracker_contract<own::set_tracker>();
}

TEST_CASE("bitmap knows which rows were touched since the boundary", "[tracker]") {
  bitmap::table_rows rows(bitmap{}, 200, cursors(cursor::base));
  rows.touch(std::span<const std::int32_t>(std::array{70, 3}));
  CHECK(rows.touched(70));
  CHECK(rows.touched(3));
  CHECK_FALSE(rows.touched(71));
  rows.begin(row_selection::dirty, cursor::base);
  for (std::uint64_t block = 0; block < rows.blocks(); ++block) (void)rows.take(block);
  CHECK_FALSE(rows.touched(70));
}
