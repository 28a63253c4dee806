// expect: this strategy lacks something that strategy asks for
#include "models.hpp"

struct vague {
  static constexpr std::string_view name = "vague";
  static constexpr checkrow::cursor_set cursors = 0;
#ifdef CHECKROW_FIXED
  checkrow::save_plan plan(const checkrow::history&, const checkrow::boundary&) const;
#else
  checkrow::row_selection plan(const checkrow::history&, const checkrow::boundary&) const;
#endif
};

template struct checkrow::policies<vague, my_codec, my_sink>;
