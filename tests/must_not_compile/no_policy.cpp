// expect: was given a type that is no policy
#include "models.hpp"

#ifdef CHECKROW_FIXED
template struct checkrow::policies<my_codec, my_sink>;
#else
template struct checkrow::policies<my_codec, my_sink, int>;
#endif
