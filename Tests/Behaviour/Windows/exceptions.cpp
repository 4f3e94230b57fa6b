/* Exceptions of delegates. A delegate may catch its own C++ exception. An exception that leaves the
 * delegate ends the program, even if the library's caller would catch it. Exceptions other than C++
 * exceptions pass through the library. */

#include <multicast.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <windows.h>

static void catching(void *, uint32_t, const void *, size_t) {
  try {
    throw 1;
  } catch (int) {
    std::puts("caught inside");
  }
}
static void throwing(void *, uint32_t, const void *, size_t) { throw 1; }
static void raising(void *code, uint32_t, const void *, size_t) {
  RaiseException(*static_cast<DWORD *>(code), EXCEPTION_NONCONTINUABLE, 0, nullptr);
}

[[noreturn]] static void end_with(const char *what) {
  std::puts(what);
  std::fflush(stdout);
  std::_Exit(0);
}
static LONG WINAPI filter(EXCEPTION_POINTERS *) { end_with("the filter was called"); }

int main(int, char **arguments) {
  const char *kind = arguments[1];
  DWORD code = std::strcmp(kind, "microsoft") == 0 ? 0xE06D7363u : 0xE0000001u;
  multicast_delegate d = {catching, nullptr};
  if (std::strcmp(kind, "throwing") == 0) d.function = throwing;
  if (std::strcmp(kind, "microsoft") == 0 || std::strcmp(kind, "fault") == 0) {
    d.function = raising;
    d.context = &code;
  }
  std::set_terminate([] { end_with("std::terminate() was called"); });
  SetUnhandledExceptionFilter(filter);
  const multicast m = multicast_create();
  if (multicast_add(m, d, nullptr, nullptr) != MULTICAST_OK) return 1;
  try {
    static_cast<void>(multicast_invoke(m, 0, nullptr, 0));
  } catch (int) {
    std::puts("passed through the library");
  }
  return 0;
}
