// expect: this sink lacks something that sink asks for
#include "models.hpp"

struct blind {
  using writer = my_sink::writer;
  using reader = my_sink::reader;
  checkrow::result<writer> create(std::string_view);
  checkrow::result<reader> open(std::string_view);
#ifdef CHECKROW_FIXED
  checkrow::result<std::vector<checkrow::blob>> list();
#endif
  checkrow::status remove(std::string_view);
  std::string where();
};

template struct checkrow::policies<my_codec, blind>;
