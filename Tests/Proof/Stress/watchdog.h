/* Detects hangs: if a thread makes no progress for too long, prints what all threads are doing and
 * ends the process. */

#ifndef WATCHDOG_H
#define WATCHDOG_H

void watchdog_start(int patience_s);

#endif
