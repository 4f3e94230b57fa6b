#include "shims.h"

__thread void *shims_thread_record;
__thread bool shims_thread_is_ending;
__thread uint32_t shims_release_depth;
__thread int32_t shims_create_error;

shims_directory shims_directories[SHIMS_DIRECTORY_COUNT];
const uint32_t shims_no_listener_flag = 0;
shims_slot_pool shims_slot_pools[SHIMS_DIRECTORY_COUNT];
_Alignas(64) unsigned char
    shims_process_memory[SHIMS_PROCESS_MEMORY_COUNT][SHIMS_PROCESS_MEMORY_SIZE];

shims_padded_stripe shims_stripes[SHIMS_STRIPE_COUNT];
shims_padded_lock shims_locks[SHIMS_LOCK_COUNT];
shims_padded_lock shims_queue_locks[SHIMS_QUEUE_LOCK_COUNT + 1];
struct shims_sleepers shims_sleepers[SHIMS_SLEEPER_LISTS];
void *shims_watches[SHIMS_WATCH_LISTS + 1];
char shims_watch_of_all[SHIMS_WATCH_SIZE];
void *shims_tallies[SHIMS_DIRECTORY_LENGTH];
