/* The target that has the name of the library. */
#include <multicast.h>

int main(void) { return multicast_destroy(multicast_create()) == MULTICAST_OK ? 0 : 1; }
