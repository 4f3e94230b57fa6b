#ifndef WARM_UP_H
#define WARM_UP_H

/* Makes the library allocate the memory that it never frees, namely a thread record, and slots for
 * a few hundred multicasts with a few delegates each. After that, an input that leaves more memory
 * allocated may have caused a leak. */
void warm_up(void);

#endif
