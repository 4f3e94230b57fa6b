/* The compiler includes this file before each source file of a transport's library. The macros in
 * this file redirect calls to libc functions to requests.c. */

#ifndef TRANSPORTS_REPLACE_H
#define TRANSPORTS_REPLACE_H

#include "requests.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#define CLIENTS_MAX TRANSPORTS_MAX
#define INQUIRY_LISTS 4

#undef strdup
#define malloc ask_malloc
#define calloc ask_calloc
#define strdup ask_strdup
#define free give_back
#define pthread_atfork ask_atfork
#define pthread_condattr_init ask_condition_attributes
#define pthread_attr_init ask_thread_attributes
#define pthread_create ask_thread
#define eventfd ask_eventfd
#define getrandom ask_random
#define fopen ask_stream
#define poll(watched, count, timeout_ms) ask_poll(watched, count, timeout_ms)
#define recv ask_receiving

#endif
