#include <stdio.h>
#include <stdlib.h>

// The first function of a driver that the loader calls.
void* clGetExtensionFunctionAddress(const char* name) {
  (void)name;
  fprintf(stderr, "the topology of this machine is unknown\n");
  abort();
}
