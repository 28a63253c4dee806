// Loads the consumer as a plugin, and runs it.
#include <dlfcn.h>

#include <iostream>

int main() {
  // As C++ names it: int consume().
  void* const plugin = dlopen(PLUGIN, RTLD_NOW);
  void* const consume = plugin != nullptr ? dlsym(plugin, "_Z7consumev") : nullptr;
  if (consume == nullptr) {
    std::cerr << dlerror() << "\n";
    return 1;
  }
  return reinterpret_cast<int (*)()>(consume)();
}
