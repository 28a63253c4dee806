// expect: copy_on_touch needs a tracker that satisfies block_tracker
#include <checkrow/capture/copy_on_touch.hpp>
#include <checkrow/capture/stop_and_copy.hpp>

#include "models.hpp"

struct coarse {
  struct table_rows {
    table_rows(const coarse&, std::uint64_t, checkrow::cursor_set);
    template <class Id>
    std::size_t touch(std::span<const Id>) noexcept;
    void touch_range(std::uint64_t, std::uint64_t) noexcept;
    std::uint64_t dirty() const noexcept;
    void begin(checkrow::row_selection, checkrow::cursor) noexcept;
    std::uint64_t blocks() const noexcept;
    std::uint64_t take(std::uint64_t) noexcept;
    void commit(checkrow::cursor_set) noexcept;
    void mark(checkrow::cursor, std::span<const std::uint64_t>) noexcept;
    void clear() noexcept;
  };
};

#ifdef CHECKROW_FIXED
using chosen = checkrow::policies<my_codec, my_sink, coarse>::capture;  // stop_and_copy
#else
using chosen = checkrow::copy_on_touch;
#endif
std::size_t size_of_part = sizeof(chosen::table_part<coarse::table_rows>);
