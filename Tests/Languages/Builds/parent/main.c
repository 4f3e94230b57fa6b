/* The program of a parent project. Its target is named `multicast`, like that of the library. */
#include <multicast.h>

int main(void) { return multicast_destroy(multicast_create()) == MULTICAST_OK ? 0 : 1; }
