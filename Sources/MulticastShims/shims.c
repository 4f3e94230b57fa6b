#include "shims.h"

#include "../../include/multicast.h"

__thread void *shims_thread_record;
__thread bool shims_thread_is_ending;
__thread uint32_t shims_release_depth;

void *shims_multicast_directory[SHIMS_DIRECTORY_LENGTH];
void *shims_registration_directory[SHIMS_DIRECTORY_LENGTH];
void *shims_lifetime_directory[SHIMS_DIRECTORY_LENGTH];
void *shims_queue_directory[SHIMS_DIRECTORY_LENGTH];
void *shims_broadcaster_directory[SHIMS_DIRECTORY_LENGTH];

shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT];  // zero is PTHREAD_MUTEX_INITIALIZER
pthread_mutex_t shims_lifetime_mutexes[SHIMS_LIFETIME_MUTEX_COUNT];  // likewise
shims_padded_mutex shims_queue_mutexes[SHIMS_QUEUE_MUTEX_COUNT] = {
    [0 ... SHIMS_QUEUE_MUTEX_COUNT - 1] = {.mutex = SHIMS_SPINNING_MUTEX_INITIALIZER}};
pthread_mutex_t shims_name_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t shims_slab_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t shims_call_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t shims_call_condition;
pthread_key_t shims_exit_key;

#ifdef __SANITIZE_THREAD__
// swiftc's instrumentation calls these; gcc's runtime has them under their ordinary names alone.
SHIMS_HIDDEN void *__tsan_memcpy(void *to, const void *from, size_t size);
SHIMS_HIDDEN void *__tsan_memset(void *block, int byte, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memset(void *block, int byte, size_t size) { return memset(block, byte, size); }
#endif

const char *shims_status_name(int32_t status) {
  switch (status) {
#define NAME(name, value, message) \
  case value:                      \
    return #name;
    MULTICAST_STATUS_MAP(NAME)
#undef NAME
  }
  return "MULTICAST_UNKNOWN_STATUS";
}

const char *shims_status_message(int32_t status) {
  switch (status) {
#define MESSAGE(name, value, message) \
  case value:                         \
    return message;
    MULTICAST_STATUS_MAP(MESSAGE)
#undef MESSAGE
  }
  return "not a status of this library";
}
