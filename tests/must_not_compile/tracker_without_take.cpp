// expect: this tracker lacks something that row_tracker asks for
#include "models.hpp"

struct forgetful {
  struct table_rows {
    table_rows(const forgetful&, std::uint64_t, checkrow::cursor_set);
    template <class Id>
    std::size_t touch(std::span<const Id>) noexcept;
    void touch_range(std::uint64_t, std::uint64_t) noexcept;
    std::uint64_t dirty() const noexcept;
    void begin(checkrow::row_selection, checkrow::cursor) noexcept;
    std::uint64_t blocks() const noexcept;
#ifdef CHECKROW_FIXED
    std::uint64_t take(std::uint64_t) noexcept;
#endif
    void commit(checkrow::cursor_set) noexcept;
    void mark(checkrow::cursor, std::span<const std::uint64_t>) noexcept;
    void clear() noexcept;
  };
};

template struct checkrow::policies<my_codec, my_sink, forgetful>;
