// The bodies that separate compilation leaves out of all other files.
#include <checkrow/source.hpp>
