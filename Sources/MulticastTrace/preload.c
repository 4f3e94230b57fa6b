// libmulticast-trace.so, which multicast-trace loads into a program through LD_PRELOAD. It finds
// libmulticast.so, watches all multicasts, and at exit records the delegates that have never been
// removed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shims.h"
#include "timeline.h"

#define EXPORTED __attribute__((visibility("default")))

// ---- The watch ---------------------------------------------------------------------------------

// There can be only one watch of all multicasts. If the program also sets one, the trace's watch
// calls the program's functions. Objects of this type are never freed, because a function of a
// replaced watch may still be running. Never freeing them is acceptable, because a program sets few
// different watches.
typedef struct both {
  multicast_watch program;
  struct both *next;
} both;

// slow() saves the label here for called(), which cannot look it up after the delegate's removal.
static __thread char label_of_slow[64] __attribute__((tls_model("initial-exec")));

static void slow(void *context, multicast_token token, const char *label, uint64_t elapsed_ns) {
  const multicast_watch *program = &((const both *)context)->program;
  if (label != NULL) memcpy(label_of_slow, label, strnlen(label, sizeof label_of_slow - 1));
  if (program->slow_ns != 0 && program->slow != NULL)
    program->slow(program->context, token, label, elapsed_ns);
}

static void called(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns) {
  const multicast_watch *program = &((const both *)context)->program;
  timeline_add(false, token, label_of_slow[0] != '\0' ? label_of_slow : NULL, event, elapsed_ns);
  memset(label_of_slow, 0, sizeof label_of_slow);
  if (program->called != NULL) program->called(program->context, token, event, elapsed_ns);
}

static void stuck(void *context, multicast_token token, const char *label, uint64_t elapsed_ns) {
  const multicast_watch *program = &((const both *)context)->program;
  timeline_add(true, token, label, 0, elapsed_ns);
  if (program->slow_ns != 0 && program->stuck != NULL)
    program->stuck(program->context, token, label, elapsed_ns);
}

static void warn_of_listeners(void *context, multicast target, uint64_t count, const char *label,
                    multicast_function function, uint64_t most) {
  const multicast_watch *program = &((const both *)context)->program;
  program->listener_warning(program->context, target, count, label, function, most);
}

// Returns the context of a watch that calls the trace and then the program's watch; NULL if memory
// runs out.
static const both *join(const multicast_watch *program) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static both alone, *others;
  if (program == NULL) return &alone;
  pthread_mutex_lock(&mutex);
  both *it = others;
  while (it != NULL && memcmp(&it->program, program, sizeof *program) != 0) it = it->next;
  if (it == NULL) {
    it = malloc(sizeof *it);
    if (it != NULL) {
      it->program = *program;
      it->next = others;
      others = it;
    }
  }
  pthread_mutex_unlock(&mutex);
  return it;
}

static multicast_status watch_all(trace_process *mine, const multicast_watch *program) {
  const multicast all = {0};
  const both *it = join(program);
  if (it == NULL) {
    atomic_store(&mine->has_lost_watch, true);
    return library.set_watch(all, program);
  }
  multicast_watch watch = MULTICAST_WATCH_INIT;
  watch.context = (void *)(uintptr_t)it;
  watch.called = called;
  watch.stuck = stuck;
  watch.slow = slow;
  watch.listener_warning_count = it->program.listener_warning_count;
  watch.listener_warning = it->program.listener_warning != NULL ? warn_of_listeners : NULL;
  // A watch has only one threshold for slow calls, so the program's threshold takes precedence.
  watch.slow_ns = it->program.slow_ns != 0 ? it->program.slow_ns : trace->slow_ns;
  return library.set_watch(all, &watch);
}

// Replaces the library's multicast_set_watch() in programs that are linked with the library.
EXPORTED multicast_status multicast_set_watch(multicast target, const multicast_watch *watch) {
  trace_process *mine = atomic_load(&process);
  const bool is_of_all = target.id == 0;
  if (library.set_watch == NULL || mine == NULL) {
    multicast_status (*set)(multicast, const multicast_watch *) = library.set_watch;
    if (set == NULL) *(void **)&set = dlsym(RTLD_NEXT, "multicast_set_watch");
    return set == NULL ? MULTICAST_ERROR_STATE : set(target, watch);
  }
  if (is_of_all && (watch == NULL || (watch->struct_size == sizeof *watch && watch->reserved == 0)))
    return watch_all(mine, watch);
  multicast_status status = library.set_watch(target, watch);
  if (status < 0 || watch == NULL) return status;
  if (is_of_all) atomic_store(&mine->has_lost_watch, true);
  else atomic_fetch_add(&mine->own_watches, 1);
  return status;
}

// ---- Finding the library -----------------------------------------------------------------------

static void *get(void *object, const void *base, const char *name) {
  Dl_info info;
  void *found = dlsym(object, name);
  // Ignore functions in other shared objects, such as multicast_set_watch() in this file.
  return found != NULL && dladdr(found, &info) != 0 && info.dli_fbase == base ? found : NULL;
}

// If the object that contains the function is the library, starts watching the library's calls.
static void look(const void *function) {
  Dl_info info;
  shims_place place;
  // Rejects most objects without calling the loader, because the loader might call back into such
  // an object, for instance into an allocator.
  if (library.set_watch != NULL || !shims_locate((uint64_t)(uintptr_t)function, &place) ||
      (strstr(place.module, "multicast") == NULL && strcmp(place.module, "program") != 0) ||
      dladdr(function, &info) == 0)
    return;
  const bool is_program = strcmp(place.module, "program") == 0;
  void *object = dlopen(is_program ? NULL : info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  trace_library found = {NULL, NULL, NULL, NULL};
  if (object == NULL) return;
  *(void **)&found.set_watch = get(object, info.dli_fbase, "multicast_set_watch");
  *(void **)&found.token_get = get(object, info.dli_fbase, "multicast_token_get_registration");
  *(void **)&found.call_stack = get(object, info.dli_fbase, "multicast_call_stack");
  *(void **)&found.dump = get(object, info.dli_fbase, "multicast_dump");
  if (found.set_watch == NULL || found.token_get == NULL || found.call_stack == NULL ||
      found.dump == NULL)
    return;
  library = found;
  if (!timeline_join()) return;
  pthread_atfork(NULL, NULL, timeline_in_child);
  watch_all(atomic_load(&process), NULL);
}

static void begin(void);

// The library calls this function when it is loaded, either at program start or later by dlopen().
// Replacing dlopen() instead would not work, because the loader would then search for libraries on
// behalf of this object instead of the program.
#ifdef __GLIBC__
EXPORTED int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                               void *object) {
  static int (*real)(void (*)(void), void (*)(void), void (*)(void), void *);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "__register_atfork");
  const int status = real(prepare, parent, child, object);
#else
EXPORTED int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  static int (*real)(void (*)(void), void (*)(void), void (*)(void));
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "pthread_atfork");
  const int status = real(prepare, parent, child);
#endif
  begin();
  if (prepare != NULL && trace != NULL) look((const void *)(uintptr_t)prepare);
  return status;
}

// ---- Beginning and end -------------------------------------------------------------------------

// Restores the environment, so that programs that this program starts are not traced.
static void clean_environment(void) {
  const char *value = getenv("LD_PRELOAD");
  const char *others = value != NULL ? strchr(value, ':') : NULL;
  unsetenv(TRACE_VARIABLE);
  if (others == NULL) unsetenv("LD_PRELOAD");
  else setenv("LD_PRELOAD", others + 1, 1);
}

// Only the first call has an effect, no matter which function makes it.
static void begin(void) {
  static bool has_begun;
  const char *path = getenv(TRACE_VARIABLE);
  if (has_begun || path == NULL) return;
  has_begun = true;
  if (!timeline_open(path) || !trace->follows) clean_environment();
}

__attribute__((constructor)) static void was_loaded(void) { begin(); }

// Reads the output of multicast_dump(), which lists the delegates that are still registered.
typedef struct dump {
  trace_process *mine;
  char multicast[80];
} dump;

static bool read_line(void *context, const char *text, size_t size) {
  dump *it = context;
  char line[512], name[sizeof line + sizeof it->multicast + 8], *end;
  if (size >= sizeof line) size = sizeof line - 1;
  memcpy(line, text, size);
  line[size] = '\0';
  if (strncmp(line, "multicast 0x", 12) == 0) {
    const char *label = strchr(line, '"');
    it->multicast[0] = '\0';
    end = label != NULL ? strstr(label, "\": ") : NULL;
    if (end != NULL) {
      end[1] = '\0';
      snprintf(it->multicast, sizeof it->multicast, " in %s", label);
    }
  }
  if (strncmp(line, "  delegate 0x", 13) != 0) return true;
  const char *rest = line + 13 + strspn(line + 13, "0123456789abcdef");
  while (*rest == ':' || *rest == ' ') ++rest;
  end = strstr(line, ", context ");
  if (end != NULL) *end = '\0';
  snprintf(name, sizeof name, "%s%s", rest, it->multicast);
  timeline_count(&it->mine->kept, name, 0);
  return true;
}

// Runs after the functions registered with atexit() and the destructors of static C++ objects.
__attribute__((destructor)) static void is_exiting(void) {
  dump it = {atomic_load(&process), ""};
  if (it.mine == NULL) return;
  library.dump(read_line, &it);
  timeline_flush();
  atomic_store(&it.mine->has_ended, true);
}
