// expect: two sinks were given
#include "models.hpp"

struct other_sink : my_sink {};

#ifdef CHECKROW_FIXED
template struct checkrow::policies<my_codec, my_sink>;
#else
template struct checkrow::policies<my_sink, my_codec, other_sink>;
#endif
