// The codecs' bodies, as separate compilation has them.
#include <checkrow/source/codecs.hpp>
