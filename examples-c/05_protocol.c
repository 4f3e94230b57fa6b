/* SPDX-License-Identifier: MIT
 *
 * 05_protocol: a protocol whose methods are typed and optional, and return values.
 *
 * A document has listeners. Their protocol is a struct of function pointers, one per method, whose
 * types state the method's parameters and result. A listener that does not need a method leaves it
 * NULL. The document calls the methods in these ways:
 *
 *     did_open, did_save  have no result. multicast_invoke() calls listener_notify() for each
 *                         listener, and this function calls the method. The field `events` in the
 *                         options ensures that a listener without the method is not called.
 *     title               multicast_visit() passes each listener to a visitor, which collects the
 *                         results.
 *     follow, will_close  use multicast_visit(), too. The visitor stops at the first listener that
 *                         follows the link, or that refuses to let the document close.
 *     will_rename,        use multicast_visit_undo(). All listeners prepare for the new name. If
 *     not_renamed         one refuses, listeners that have prepared are notified in reverse order.
 *
 * The library's contexts are void pointers. Only listener_notify() and asked() convert a context to
 * the type of a listener, and need no cast.
 *
 * Prints the text in expected/05_protocol.txt.
 */

#include <multicast.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The protocol --------------------------------------------------------------------------- */

struct document;

/* Every method may be NULL. `self` belongs to the listener. */
struct listener {
  const char *name;
  void *self;
  /* The document is open. */
  void (*did_open)(void *self, const struct document *document);
  /* The document has been saved, and is `bytes` bytes long. */
  void (*did_save)(void *self, const struct document *document, size_t bytes);
  /* Returns a text for the window title, or NULL if it has none. */
  const char *(*title)(void *self, const struct document *document);
  /* Follows a link in the document. Returns false if the link is not for this listener. */
  bool (*follow)(void *self, const char *link);
  /* Returns whether the document may be closed. If not, sets `why`. */
  bool (*will_close)(void *self, const struct document *document, const char **why);
  /* Prepares for another name. Returns false if the document must not have this name. */
  bool (*will_rename)(void *self, const char *name);
  /* The document is not renamed after all. `name` is the new name for which the listener has
   * prepared. */
  void (*not_renamed)(void *self, const char *name);
};

/* The events, one for each method that is called through multicast_invoke(). */
enum { DID_OPEN, DID_SAVE };

/* The payloads of these events, which contain the arguments of the methods. */
struct did_open {
  const struct document *document;
};
struct did_save {
  const struct document *document;
  size_t bytes;
};

/* The function of every delegate. `events` guarantees that the method is not NULL. */
static void listener_notify(void *context, uint32_t event, const void *payload, size_t size) {
  const struct listener *listener = context;
  (void)size;
  switch (event) {
    case DID_OPEN: {
      const struct did_open *arguments = payload;
      listener->did_open(listener->self, arguments->document);
      break;
    }
    case DID_SAVE: {
      const struct did_save *arguments = payload;
      listener->did_save(listener->self, arguments->document, arguments->bytes);
      break;
    }
    default: break;
  }
}

/* Returns the listener that was passed to a visitor. */
static const struct listener *asked(const multicast_delegate *delegate) {
  return delegate->context;
}

/* ---- The document --------------------------------------------------------------------------- */

struct document {
  const char *name;
  const char *text;
  bool is_saved;
  multicast listeners;
};

static void fail(const char *what, const char *why) {
  fprintf(stderr, "05_protocol: %s: %s\n", what, why);
  exit(EXIT_FAILURE);
}

static void must(const char *what, multicast_status status) {
  if (status != MULTICAST_OK) fail(what, multicast_status_message(status));
}

/* Returns the result of an invocation or a visit if it is a count; ends the program otherwise. */
static long long counted(const char *what, int64_t called) {
  if (called < 0) fail(what, multicast_status_message(called));
  return called;
}

/* A mask of 0 would mean all events. Every mask therefore includes an event that is never sent, so
 * that a listener with neither method does not receive all events. */
static uint64_t listener_events(const struct listener *listener) {
  uint64_t events = UINT64_C(1) << 63;
  if (listener->did_open != NULL) events |= UINT64_C(1) << DID_OPEN;
  if (listener->did_save != NULL) events |= UINT64_C(1) << DID_SAVE;
  return events;
}

/* The document borrows the listener until document_remove() has returned. */
static void document_add(struct document *document, struct listener *listener, int32_t priority) {
  multicast_delegate delegate = {listener_notify, listener};
  multicast_add_options options = multicast_add_options_default();
  options.events = listener_events(listener);
  options.priority = priority;
  must("add", multicast_add(document->listeners, delegate, &options, NULL));
}

static void document_remove(struct document *document, struct listener *listener) {
  multicast_delegate delegate = {listener_notify, listener};
  printf("remove %s\n", listener->name);
  must("remove", multicast_remove_every(document->listeners, delegate));
}

static void document_open(struct document *document) {
  struct did_open arguments = {document};
  printf("open %s\n", document->name);
  long long told = counted("invoke", multicast_invoke(document->listeners, DID_OPEN, &arguments,
                                                      sizeof arguments));
  printf("  told: %lld\n", told);
}

static void document_save(struct document *document) {
  struct did_save arguments = {document, strlen(document->text)};
  document->is_saved = true;
  printf("save %s\n", document->name);
  long long told = counted("invoke", multicast_invoke(document->listeners, DID_SAVE, &arguments,
                                                      sizeof arguments));
  printf("  told: %lld\n", told);
}

/* ---- Questions of the document: each has a struct with space for the answer, and a visitor -- */

struct title_question {
  const struct document *document;
  char answer[80];
};

/* Collects the texts of all listeners. */
static bool visit_title(void *context, const multicast_delegate *delegate) {
  struct title_question *question = context;
  const struct listener *listener = asked(delegate);
  if (listener->title == NULL) return true;
  const char *proposal = listener->title(listener->self, question->document);
  if (proposal == NULL) return true;
  const size_t length = strlen(question->answer);
  snprintf(question->answer + length, sizeof question->answer - length, " - %s", proposal);
  printf("  %s: %s\n", listener->name, proposal);
  return true;
}

static void document_show_title(const struct document *document) {
  struct title_question question = {document, ""};
  puts("title?");
  long long passed =
      counted("visit", multicast_visit(document->listeners, visit_title, &question));
  printf("  %s%s; visited: %lld\n", document->name, question.answer, passed);
}

struct follow_question {
  const char *link;
  const struct listener *answer; /* The listener that followed the link, or NULL. */
};

/* Stops at the first listener that follows the link. */
static bool visit_follow(void *context, const multicast_delegate *delegate) {
  struct follow_question *question = context;
  const struct listener *listener = asked(delegate);
  if (listener->follow == NULL || !listener->follow(listener->self, question->link)) return true;
  question->answer = listener;
  return false;
}

static void document_follow(const struct document *document, const char *link) {
  struct follow_question question = {link, NULL};
  printf("follow %s\n", link);
  long long passed =
      counted("visit", multicast_visit(document->listeners, visit_follow, &question));
  const struct listener *by = question.answer;
  printf("  followed by: %s; visited: %lld\n", by == NULL ? "nobody" : by->name, passed);
}

struct close_question {
  const struct document *document;
  const struct listener *answer; /* The listener that refused, or NULL. */
  const char *why;
};

/* Stops at the first listener that refuses. */
static bool visit_will_close(void *context, const multicast_delegate *delegate) {
  struct close_question *question = context;
  const struct listener *listener = asked(delegate);
  if (listener->will_close == NULL) return true;
  if (listener->will_close(listener->self, question->document, &question->why)) return true;
  question->answer = listener;
  return false;
}

/* Returns whether the document has been closed. */
static bool document_close(const struct document *document) {
  struct close_question question = {document, NULL, ""};
  printf("close %s\n", document->name);
  long long passed =
      counted("visit", multicast_visit(document->listeners, visit_will_close, &question));
  if (question.answer == NULL) {
    printf("  closed; visited: %lld\n", passed);
  } else {
    printf("  refused by: %s, %s; visited: %lld\n", question.answer->name, question.why, passed);
  }
  return question.answer == NULL;
}

struct rename_question {
  const char *name;
  const struct listener *answer; /* The listener that refused, or NULL. */
};

static bool visit_will_rename(void *context, const multicast_delegate *delegate) {
  struct rename_question *question = context;
  const struct listener *listener = asked(delegate);
  if (listener->will_rename == NULL) return true;
  if (listener->will_rename(listener->self, question->name)) return true;
  question->answer = listener;
  return false;
}

static bool visit_not_renamed(void *context, const multicast_delegate *delegate) {
  const struct rename_question *question = context;
  const struct listener *listener = asked(delegate);
  if (listener->not_renamed != NULL) listener->not_renamed(listener->self, question->name);
  return true;
}

static void document_rename(struct document *document, const char *name) {
  struct rename_question question = {name, NULL};
  printf("rename to %s\n", name);
  long long prepared =
      counted("visit", multicast_visit_undo(document->listeners, visit_will_rename,
                                            visit_not_renamed, &question));
  if (question.answer == NULL) {
    document->name = name;
    printf("  renamed; prepared: %lld\n", prepared);
  } else {
    printf("  refused by: %s; prepared: %lld\n", question.answer->name, prepared);
  }
}

/* ---- The listeners: each has its own type, or none, and some of the methods ----------------- */

/* Refuses to close a document that has unsaved changes. */
static bool guard_will_close(void *self, const struct document *document, const char **why) {
  (void)self;
  *why = "it is not saved";
  return document->is_saved;
}

static const char *guard_title(void *self, const struct document *document) {
  (void)self;
  return document->is_saved ? NULL : "edited";
}

/* Counts how often a word is misspelled. */
struct speller {
  const char *wrong;
  int count;
  char title[32];
};

static void speller_did_open(void *self, const struct document *document) {
  struct speller *speller = self;
  const char *found = document->text;
  while ((found = strstr(found, speller->wrong)) != NULL) {
    speller->count += 1;
    found += strlen(speller->wrong);
  }
  printf("  speller: %d mistakes\n", speller->count);
}

static const char *speller_title(void *self, const struct document *document) {
  struct speller *speller = self;
  (void)document;
  snprintf(speller->title, sizeof speller->title, "%d mistakes", speller->count);
  return speller->title;
}

static bool speller_will_close(void *self, const struct document *document, const char **why) {
  const struct speller *speller = self;
  (void)document;
  *why = "it has mistakes";
  return speller->count == 0;
}

/* Imitates a listener that keeps a copy of each saved document, under the document's name. */
struct backup {
  size_t bytes;
};

static bool backup_will_rename(void *self, const char *name) {
  (void)self;
  printf("  backup: makes room for %s\n", name);
  return true;
}

static void backup_not_renamed(void *self, const char *name) {
  (void)self;
  printf("  backup: gives up %s\n", name);
}

static void backup_did_save(void *self, const struct document *document, size_t bytes) {
  struct backup *backup = self;
  backup->bytes += bytes;
  printf("  backup: %s, %zu bytes\n", document->name, bytes);
}

/* Follows the links that begin with `scheme`, and refuses names that look like such a link. */
struct opener {
  const char *scheme;
};

static bool opener_will_rename(void *self, const char *name) {
  const struct opener *opener = self;
  return strncmp(name, opener->scheme, strlen(opener->scheme)) != 0;
}

static bool opener_follow(void *self, const char *link) {
  const struct opener *opener = self;
  return strncmp(link, opener->scheme, strlen(opener->scheme)) == 0;
}

/* ---- Main program --------------------------------------------------------------------------- */

int main(void) {
  struct document letter = {.name = "letter.txt",
                            .text = "Dear Ada, I recieved your letter, and it was well recieved.",
                            .listeners = multicast_create()};
  if (letter.listeners.id == 0) must("create", multicast_create_error());

  struct speller speller_self = {"recieve", 0, ""};
  struct backup backup_self = {0};
  struct opener mailer_self = {"mailto:"}, browser_self = {"https:"};

  /* Methods that are not set are NULL. */
  struct listener guard = {"guard", .title = guard_title, .will_close = guard_will_close};
  struct listener speller = {"speller", &speller_self, .did_open = speller_did_open,
                             .title = speller_title, .will_close = speller_will_close};
  struct listener backup = {"backup", &backup_self, .did_save = backup_did_save,
                            .will_rename = backup_will_rename,
                            .not_renamed = backup_not_renamed};
  struct listener mailer = {"mailer", &mailer_self, .follow = opener_follow,
                            .will_rename = opener_will_rename};
  struct listener browser = {"browser", &browser_self, .follow = opener_follow};

  document_add(&letter, &speller, 0);
  document_add(&letter, &backup, 0);
  document_add(&letter, &mailer, 0);
  document_add(&letter, &browser, 0);
  document_add(&letter, &guard, 10); /* Before all others. */

  document_open(&letter);
  document_show_title(&letter);
  document_follow(&letter, "mailto:ada@example.org");
  document_follow(&letter, "https://example.org/");
  document_follow(&letter, "gopher://example.org/");

  document_rename(&letter, "mailto:ada.txt");
  document_rename(&letter, "ada.txt");

  if (document_close(&letter)) fail("close", "closed although it is not saved");
  document_save(&letter);
  document_show_title(&letter);
  if (document_close(&letter)) fail("close", "closed although the speller is there");
  document_remove(&letter, &speller);
  if (!document_close(&letter)) fail("close", "not closed although nobody minds");

  must("destroy", multicast_destroy(letter.listeners));
  if (backup_self.bytes != strlen(letter.text)) fail("backup", "not of the whole letter");
  if (fflush(stdout) != 0 || ferror(stdout)) {
    perror("05_protocol: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
