// expect: a checkpointer needs a sink: pass directory
#include "models.hpp"

#ifdef CHECKROW_FIXED
template struct checkrow::policies<my_codec, my_sink>;
#else
template struct checkrow::policies<my_codec>;
#endif
