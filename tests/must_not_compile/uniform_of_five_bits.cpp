// expect: uniform<Bits> comes in 2, 3, 4 and 8 bits per element
#include <checkrow/codecs/uniform.hpp>

#ifdef CHECKROW_FIXED
template struct checkrow::uniform<4>;
#else
template struct checkrow::uniform<5>;
#endif
