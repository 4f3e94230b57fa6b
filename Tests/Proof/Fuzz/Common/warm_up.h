#ifndef WARM_UP_H
#define WARM_UP_H

/* Makes the library allocate the memory that it never frees: a thread record, and slots for some
 * hundreds of multicasts with some delegates each. If an input leaves more memory allocated after
 * that, it may be a leak. */
void warm_up(void);

#endif
