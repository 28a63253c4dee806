// table.hpp alone: what every file that touches rows pays.
#include <checkrow/table.hpp>
