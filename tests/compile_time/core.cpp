// The other bodies, as separate compilation has them.
#include <checkrow/source/core.hpp>
