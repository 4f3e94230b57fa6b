/* Replaces _exit() in programs compiled with -D_exit=end_with_counts. gcov normally writes its
 * counts in an atexit() function, which does not run if a process calls _exit(), as the tests'
 * child processes do. */

#include <gcov.h>
#include <unistd.h>

void end_with_counts(int status);

void end_with_counts(int status) {
  __gcov_dump();
  _exit(status);
}
