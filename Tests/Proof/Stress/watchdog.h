/* The watchdog detects hangs. If a thread makes no progress for too long, the watchdog prints what
 * all threads are doing and ends the process. */

#ifndef WATCHDOG_H
#define WATCHDOG_H

void watchdog_start(int patience_s);

#endif
