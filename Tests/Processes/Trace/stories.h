// The actions of the traced programs, each of which has a name.

#ifndef STORIES_H
#define STORIES_H

// Performs the action with this name. Returns the exit status of the program.
__attribute__((visibility("default"))) int tell(const char *name, char **arguments);

#endif
