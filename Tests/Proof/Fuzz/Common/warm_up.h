#ifndef WARM_UP_H
#define WARM_UP_H

/* Makes the library allocate the memory that it never frees: a thread record, and slots for some
 * hundreds of multicasts with some delegates each. After that, an input that leaves more memory
 * allocated may have caused a leak. */
void warm_up(void);

#endif
