// Bodies of detail/guarded.hpp: what an exception of the user's code becomes.
#pragma once

#include <cerrno>
#include <checkrow/detail/guarded.hpp>
#include <new>

namespace checkrow::inline v0::detail {

#if CHECKROW_EXCEPTIONS
[[gnu::noinline]] CHECKROW_INLINE new_error caught(const char* whose, const std::string& where) {
  try {
    throw;
  } catch (const failure& known) {
    return {error_pointer(new error(known.error()))};
  } catch (const std::bad_alloc&) {
    return make_error(error_kind::io, {"the system has no memory left for ", whose}, {where},
                      {"free some memory"}, ENOMEM);
  } catch (const std::exception& thrown) {
    return make_error(error_kind::misuse, {whose, " threw: ", thrown.what()}, {where}, {"mend that code"});
  } catch (...) {
    return make_error(error_kind::misuse, {whose, " threw something"}, {where}, {"mend that code"});
  }
}
#endif

}  // namespace checkrow::inline v0::detail
