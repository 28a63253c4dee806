// expect: a state is trivially copyable, or has save_state
#include <checkrow/detail/model.hpp>

struct reader {
  std::uint64_t position = 0;
#ifndef CHECKROW_FIXED
  std::string file;
#endif
};

checkrow::detail::registered_state registered(reader& state) {
  return checkrow::detail::register_state("reader", state);
}
