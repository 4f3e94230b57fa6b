/* Invocations with options, and calls of one registration. */

#ifndef INVOCATIONS_H
#define INVOCATIONS_H

void invoke_with(void);
void notify_with(void);
void invoke_token(void);
void visit_token(void);
void read_call_stack(void);

#endif
