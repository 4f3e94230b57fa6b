/* Ends the process when a thread has been doing one thing for too long, and says what all of them
 * were doing. */

#ifndef WATCHDOG_H
#define WATCHDOG_H

void watchdog_start(int patience_s);

#endif
