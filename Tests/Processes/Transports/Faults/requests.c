#include "requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

static struct {
  pthread_mutex_t lock;
  int kind;
  asking_thread asking;
  int granted, refused; /* how many more */
  bool has_refused, has_refused_memory;
  int blocks, objects;
} plan = {PTHREAD_MUTEX_INITIALIZER, ANY_REQUEST, OF_THE_TEST, 0, 0, false, false, 0, 0};

static _Thread_local bool is_of_the_test;

/* Initializes the lock again in the child of a fork, because another thread of the parent may have
 * held it. A fork handler that acquires the lock in the parent would not work, because the library
 * registers its own fork handlers at its first use. The locks would be acquired in different
 * orders, which ThreadSanitizer would report as a potential deadlock. */
static void renew_lock(void) { pthread_mutex_init(&plan.lock, NULL); }
__attribute__((constructor)) static void renew_lock_in_children(void) {
  pthread_atfork(NULL, NULL, renew_lock);
}

/* ---- For tests ------------------------------------------------------------------------------- */

void requests_are_of_the_test(void) { is_of_the_test = true; }

void refuse_requests(int kind, int granted, int refused, asking_thread asking) {
  pthread_mutex_lock(&plan.lock);
  plan.kind = kind;
  plan.asking = asking;
  plan.granted = granted;
  plan.refused = refused;
  plan.has_refused = plan.has_refused_memory = false;
  pthread_mutex_unlock(&plan.lock);
}

void refuse_request(int kind, int granted, asking_thread asking) {
  refuse_requests(kind, granted, 1, asking);
}

static bool read_locked(const bool *flag) {
  pthread_mutex_lock(&plan.lock);
  bool value = *flag;
  pthread_mutex_unlock(&plan.lock);
  return value;
}

static int change(int *number, int by) {
  pthread_mutex_lock(&plan.lock);
  int value = *number += by;
  pthread_mutex_unlock(&plan.lock);
  return value;
}

bool refusal_was_made(void) {
  pthread_mutex_lock(&plan.lock);
  plan.refused = 0;
  pthread_mutex_unlock(&plan.lock);
  return read_locked(&plan.has_refused);
}

bool refusal_was_of_memory(void) { return read_locked(&plan.has_refused_memory); }
int held_blocks(void) { return change(&plan.blocks, 0); }
int held_objects(void) { return change(&plan.objects, 0); }

/* ---- Refusals -------------------------------------------------------------------------------- */

bool is_refused(int kind, bool is_memory) {
  bool result = false;
  pthread_mutex_lock(&plan.lock);
  if (plan.refused > 0 && (plan.kind == ANY_REQUEST || plan.kind == kind) &&
      (plan.asking == OF_THE_TEST) == is_of_the_test) {
    result = plan.granted == 0;
    --*(result ? &plan.refused : &plan.granted);
    if (result && !plan.has_refused) {
      plan.has_refused = true;
      plan.has_refused_memory = is_memory;
    }
  }
  pthread_mutex_unlock(&plan.lock);
  return result;
}

void count_objects(int more) { change(&plan.objects, more); }

/* ---- libc ------------------------------------------------------------------------------------ */

static void *counted(void *block) {
  if (block != NULL) change(&plan.blocks, 1);
  return block;
}

void *ask_malloc(size_t size) { return is_refused(MALLOC, true) ? NULL : counted(malloc(size)); }

void *ask_calloc(size_t count, size_t size) {
  return is_refused(CALLOC, true) ? NULL : counted(calloc(count, size));
}

char *ask_strdup(const char *text) {
  return is_refused(STRDUP, true) ? NULL : counted(strdup(text));
}

void give_back(void *block) {
  if (block != NULL) change(&plan.blocks, -1);
  free(block);
}

int ask_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
  return is_refused(ATFORK, true) ? ENOMEM : pthread_atfork(before, parent, child);
}

int ask_condition_attributes(pthread_condattr_t *attributes) {
  return is_refused(CONDITION_ATTRIBUTES, true) ? ENOMEM : pthread_condattr_init(attributes);
}

int ask_thread_attributes(pthread_attr_t *attributes) {
  return is_refused(THREAD_ATTRIBUTES, true) ? ENOMEM : pthread_attr_init(attributes);
}

int ask_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
               void *argument) {
  return is_refused(THREAD, false) ? EAGAIN : pthread_create(thread, attributes, body, argument);
}

int ask_eventfd(unsigned value, int flags) {
  if (!is_refused(EVENTFD, false)) return eventfd(value, flags);
  errno = EMFILE;
  return -1;
}

ssize_t ask_random(void *bytes, size_t size, unsigned flags) {
  if (!is_refused(RANDOM, false)) return getrandom(bytes, size, flags);
  errno = ENOSYS;
  return -1;
}

FILE *ask_stream(const char *path, const char *mode) {
  if (!is_refused(STREAM, false)) return fopen(path, mode);
  errno = EMFILE;
  return NULL;
}

int ask_poll(struct pollfd *watched, nfds_t count, int timeout_ms) {
  if (!is_refused(POLL, true)) return poll(watched, count, timeout_ms);
  errno = ENOMEM;
  return -1;
}

ssize_t ask_receiving(int socket, void *bytes, size_t size, int flags) {
  if (!is_refused(RECEIVING, false)) return recv(socket, bytes, size, flags);
  errno = EINTR;
  return -1;
}
