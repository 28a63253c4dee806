// What the snippets of docs/guide.md and README.md take for granted: see snippets.py.
#pragma once

#include <checkrow/checkrow.hpp>
