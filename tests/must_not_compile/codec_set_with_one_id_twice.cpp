// expect: two codecs of this codec_set have the same id and bits
#include <checkrow/codecs/codec_set.hpp>

#include "models.hpp"

#ifdef CHECKROW_FIXED
struct same_id : other_codec {};
#else
struct same_id : my_codec {};
#endif

template class checkrow::codec_set<my_codec, same_id>;
