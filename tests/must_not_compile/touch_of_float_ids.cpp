// expect: no matching (member )?function for call to
#include <checkrow/capture/stop_and_copy.hpp>
#include <checkrow/table.hpp>
#include <checkrow/trackers/bitmap.hpp>

#ifdef CHECKROW_FIXED
using id = long;
#else
using id = float;
#endif

checkrow::status touch(checkrow::table_handle<checkrow::bitmap, checkrow::stop_and_copy> users) {
  return users.try_touch(std::vector<id>{1, 2, 3});
}
