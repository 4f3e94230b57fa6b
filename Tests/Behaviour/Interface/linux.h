/* Linux functions that the tests call. They fail on other systems, so a test that needs one of them
 * calls needs_kernel() first. */

#ifndef LINUX_H
#define LINUX_H

#include "harness.h"

#include <signal.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#elif !defined(_WIN32) /* on Windows, Tests/Behaviour/Windows/posix.h has them */
#define getauxval(...) 0
#define prctl(...) (-1)
#define syscall(...) (-1L)
#define pthread_getattr_default_np(...) (-1)
/* An empty range of numbers, so that no signal counts as a real-time signal. */
#define SIGRTMIN NSIG
#define SIGRTMAX (NSIG - 1)
#endif

#endif
