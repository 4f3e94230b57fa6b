#ifndef WARM_UP_H
#define WARM_UP_H

/* Has the library take what it keeps for ever: what a thread needs that invokes, and room for
 * some hundreds of multicasts with some delegates each. From then on memory that an input takes
 * and that is not given back is something to ask about. */
void warm_up(void);

#endif
