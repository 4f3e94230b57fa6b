// What the programs do that are traced.

#ifndef STORIES_H
#define STORIES_H

// Does what `name` says. Returns the exit status of the program.
__attribute__((visibility("default"))) int tell(const char *name, char **arguments);

#endif
