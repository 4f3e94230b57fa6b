/* The program of the target that has the same name as the library. */
#include <multicast.h>

int main(void) { return multicast_destroy(multicast_create()) == MULTICAST_OK ? 0 : 1; }
