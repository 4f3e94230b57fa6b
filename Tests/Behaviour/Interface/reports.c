#include "reports.h"

#include "linux.h"

#include <stdarg.h>
#include <unistd.h>

bool report_line(void *context, const char *text, size_t size) {
  report *r = context;
  CHECK(size > 0 && memchr(text, '\n', size) == text + size - 1);
  CHECK(r->length + size < sizeof r->text);
  memcpy(r->text + r->length, text, size);
  r->length += size;
  r->text[r->length] = '\0';
  ++r->lines;
  return r->lines != r->most;
}

const char *dumped(report *r) {
  r->length = 0;
  r->lines = 0;
  r->text[0] = '\0';
  CHECK_OK(multicast_dump(report_line, r));
  return r->text;
}

const char *described(report *r, multicast m) {
  r->length = 0;
  r->lines = 0;
  r->text[0] = '\0';
  CHECK_OK(multicast_describe(m, report_line, r));
  return r->text;
}

/* Returns whether the line matches the pattern, in which `...` matches any text. */
static bool is_like(const char *line, size_t size, const char *pattern) {
  const char *end = line + size, *after = NULL, *tried = NULL;
  while (line < end || *pattern != '\0') {
    if (strncmp(pattern, "...", 3) == 0) {
      after = pattern += 3;
      tried = line;
    } else if (line < end && *line == *pattern) {
      ++line, ++pattern;
    } else if (after != NULL && tried < end) { /* try again, with one more character for the dots */
      pattern = after;
      line = ++tried;
    } else {
      return false;
    }
  }
  return true;
}

bool has_line(const char *text, const char *line) {
  while (*text != '\0') {
    size_t size = strcspn(text, "\n");
    if (is_like(text, size, line)) return true;
    text += size + 1;
  }
  return false;
}

void expect_line(const char *text, const char *format, ...) {
  char line[512];
  va_list values;
  va_start(values, format);
  vsnprintf(line, sizeof line, format, values);
  va_end(values);
  if (has_line(text, line)) return;
  fprintf(stderr, "%s", text);
  check_failed(__FILE__, __LINE__, line, "is not a line of this text");
}

const char *own_number(void) {
  static char text[16];
  if (is_posix()) return "..."; /* a number that the library chooses */
  snprintf(text, sizeof text, "%d", (int)syscall(SYS_gettid));
  return text;
}

const char *some_place(void) { return is_posix() ? "0x..." : "...(+0x...)"; }
