// A program that is not linked with the library. `opener MODULE STORY` opens a module that is
// linked with the library. `opener LIBRARY --direct` opens the library and looks up its functions
// by name.

#include <dlfcn.h>
#include <multicast.h>
#include <stdio.h>
#include <string.h>

static void on_event(void *context, uint32_t event, const void *payload, size_t size) {
}

static int call_directly(void *library) {
  multicast (*create)(void);
  multicast_status (*add)(multicast, multicast_delegate, const multicast_add_options *,
                          multicast_token *);
  int64_t (*invoke)(multicast, uint32_t, const void *, size_t);
  multicast_add_options options = multicast_add_options_default();
  *(void **)&create = dlsym(library, "multicast_create");
  *(void **)&add = dlsym(library, "multicast_add");
  *(void **)&invoke = dlsym(library, "multicast_invoke");
  if (create == NULL || add == NULL || invoke == NULL) return 1;
  const multicast target = create();
  const multicast_delegate delegate = {on_event, NULL};
  options.label = "direct";
  if (add(target, delegate, &options, NULL) != MULTICAST_OK) return 1;
  for (int i = 0; i < 7; ++i) {
    if (invoke(target, 0, NULL, 0) != 1) return 1;
  }
  return 0;
}

int main(int count, char **arguments) {
  int (*tell)(const char *name, char **arguments);
  if (count < 3) return 2;
  void *object = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (object == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  if (strcmp(arguments[2], "--direct") == 0) return call_directly(object);
  *(void **)&tell = dlsym(object, "tell");
  return tell == NULL ? 1 : tell(arguments[2], arguments);
}
