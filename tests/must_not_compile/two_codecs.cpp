// expect: two codecs were given; use codec_set
#include "models.hpp"

#ifdef CHECKROW_FIXED
template struct checkrow::policies<my_sink, my_codec>;
#else
template struct checkrow::policies<my_codec, my_sink, other_codec>;
#endif
