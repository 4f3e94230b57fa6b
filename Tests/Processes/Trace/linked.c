// A program that is linked with the library.
#include "stories.h"

int main(int count, char **arguments) { return count < 2 ? 2 : tell(arguments[1], arguments); }
