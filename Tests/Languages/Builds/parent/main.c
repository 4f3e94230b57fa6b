/* The program of the parent project's target `multicast`, which has the same name as the
 * library. */
#include <multicast.h>

int main(void) { return multicast_destroy(multicast_create()) == MULTICAST_OK ? 0 : 1; }
