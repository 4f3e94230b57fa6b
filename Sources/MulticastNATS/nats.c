/* The exported functions and those of the transport: they check arguments and pass work on to the
 * thread. */

#include "client.h"

#include <errno.h>
#include <nats/nats.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
  OPTIONS_SIZE = 176, /* of version 1.1 */
  STATS_SIZE = 120,
  CAPACITY_MAX = 1 << 24,
  PAYLOAD_MAX = 1 << 28,
  SERVERS_MAX = 64
};
_Static_assert(sizeof(multicast_nats_options) == OPTIONS_SIZE, "the header says so");
_Static_assert(sizeof(multicast_nats_stats) == STATS_SIZE, "the header says so");

/* ---- The process ----------------------------------------------------------------------------- */

static void *all_clients; /* a tree */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_ready;

static void start(void) {
  struct sigaction kept;
  sigset_t before;
  process_block_signals(&before);
  /* nats_Open() has the process ignore SIGPIPE. The thread blocks it: that is enough. */
  sigaction(SIGPIPE, NULL, &kept);
  is_ready = nats_Open(-1) == NATS_OK && process_watch_forks();
  sigaction(SIGPIPE, &kept, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- All clients ----------------------------------------------------------------------------- */

static int compare_clients(const void *a, const void *b) { return (a > b) - (a < b); }

/* False: out of memory. */
static bool add_client(client *c) {
  bool is_added;
  process_lock();
  is_added = tsearch(c, &all_clients, compare_clients) != NULL;
  process_unlock();
  return is_added;
}

static void remove_client(client *c) {
  process_lock();
  tdelete(c, &all_clients, compare_clients);
  process_unlock();
}

/* The client of a transport, with a reference for the caller; NULL: there is none. */
static client *find_client(const multicast_transport *transport) {
  client *c = NULL;
  if (transport == NULL || transport->context == NULL) return NULL;
  process_lock();
  if (tfind(transport->context, &all_clients, compare_clients) != NULL) {
    c = transport->context;
    client_retain(c);
  }
  process_unlock();
  return c;
}

bool client_is_in_child(const client *c) { return c->fork_count != process_forks(); }

void client_retain(client *c) { __atomic_add_fetch(&c->references, 1, __ATOMIC_RELAXED); }

static void free_texts(multicast_nats_options *options);

static void free_client(client *c) {
  if (c->wakeup >= 0) close(c->wakeup);
  /* In the child of a fork they may be half changed. */
  if (!client_is_in_child(c)) {
    while (c->first != NULL) {
      publication *p = c->first;
      c->first = p->next;
      free(p);
    }
    names_free(&c->names);
    natsOptions_Destroy(c->how);
    natsStatistics_Destroy(c->counts);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
  }
  if (c->options.release != NULL) c->options.release(c->options.context);
  free_texts(&c->options);
  free(c);
}

void client_release(client *c) {
  if (__atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) == 0) free_client(c);
}

static void *free_on_thread(void *c) {
  free_client(c);
  nats_ReleaseThreadMemory();
  return NULL;
}

void client_release_elsewhere(client *c) {
  pthread_t thread;
  if (__atomic_sub_fetch(&c->references, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (c->options.release == NULL || process_start_thread(&thread, free_on_thread, c) != 0)
    free_client(c);
}

void client_wake(client *c) {
  if (c->is_asleep) eventfd_write(c->wakeup, 1);
  c->is_asleep = false;
}

/* ---- The transport's functions --------------------------------------------------------------- */

static publication *create_publication(const char *subject, size_t subject_size,
                                       const void *payload, size_t size) {
  publication *p = malloc(sizeof *p + subject_size + 1 + size);
  if (p == NULL) return NULL;
  p->next = NULL;
  p->subject_size = subject_size;
  p->size = size;
  memcpy(p->bytes, subject, subject_size + 1);
  if (size > 0) memcpy(p->bytes + subject_size + 1, payload, size);
  return p;
}

/* Under the lock. Whether one may be appended now. */
static multicast_status check_publication(const client *c, size_t size) {
  bool is_offline = c->stats.connected == 0;
  if (c->stats.max_payload > 0 && size > c->stats.max_payload) return MULTICAST_ERROR_LIMIT;
  if (c->is_stopping || (is_offline && (c->options.flags & MULTICAST_NATS_REFUSE_OFFLINE) != 0))
    return MULTICAST_ERROR_STATE;
  return c->stats.waiting < c->options.capacity ||
                 c->options.overflow == MULTICAST_OVERFLOW_DROP_OLDEST
             ? MULTICAST_OK
             : MULTICAST_ERROR_QUEUE_FULL;
}

/* Under the lock. */
static void append(client *c, publication *p) {
  if (c->stats.waiting == c->options.capacity) {
    publication *oldest = c->first;
    c->first = oldest->next;
    free(oldest);
    --c->stats.waiting;
    ++c->stats.dropped;
  }
  *(c->first == NULL ? &c->first : &c->last->next) = p;
  c->last = p;
  ++c->stats.waiting;
  p->ticket = ++c->stats.published;
  if (c->stats.sending == 0) client_wake(c); /* else the socket wakes it */
}

static multicast_status publish(void *context, const char *protocol, uint32_t event,
                                const void *payload, size_t size) {
  client *c = context;
  multicast_status status = MULTICAST_ERROR_LIMIT;
  char subject[ADDRESS_MAX_SIZE];
  size_t subject_size =
      coding_write(&subject_coding, subject, c->options.subject_prefix, protocol, event);
  publication *p = NULL;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (subject_size == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (size <= c->options.max_payload) {
    p = create_publication(subject, subject_size, payload, size);
    status = MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&c->lock);
  if (p != NULL) status = check_publication(c, size);
  if (status == MULTICAST_OK) append(c, p);
  else ++c->stats.refused;
  pthread_mutex_unlock(&c->lock);
  if (status != MULTICAST_OK) free(p);
  return status;
}

static bool change_name(client *c, const char *protocol, bool is_wanted) {
  bool is_done;
  pthread_mutex_lock(&c->lock);
  is_done = names_want(&c->names, protocol, is_wanted);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  return is_done;
}

static multicast_status subscribe(void *context, const char *protocol) {
  client *c = context;
  if (client_is_in_child(c)) return MULTICAST_ERROR_STATE;
  if (name_size(protocol) == 0) return MULTICAST_ERROR_INVALID_ARGUMENT;
  return change_name(c, protocol, true) ? MULTICAST_OK : MULTICAST_ERROR_OUT_OF_MEMORY;
}

static void unsubscribe(void *context, const char *protocol) {
  client *c = context;
  if (!client_is_in_child(c) && name_size(protocol) > 0) change_name(c, protocol, false);
}

/* Ends the thread. Waits for it, unless it is this one, or in a caller's function: that may wait
 * for this thread. Going away needs the lock, so one that is not away will end soon. */
static void stop(client *c) {
  pthread_mutex_lock(&c->lock);
  c->is_stopping = true;
  pthread_cond_broadcast(&c->changed);
  client_wake(c);
  pthread_mutex_unlock(&c->lock);
  /* It may wait for room in the queue. */
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
  pthread_mutex_lock(&c->lock);
  while (!c->is_done && !c->is_away && !pthread_equal(pthread_self(), c->thread))
    pthread_cond_wait(&c->changed, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

/* The threads and their calls are not here: what is left are this reference and the inbox's. */
static void release_in_child(client *c) {
  __atomic_store_n(&c->references, c->inbox.id != 0 ? 2 : 1, __ATOMIC_RELAXED);
  if (c->inbox.id != 0) multicast_destroy(c->inbox);
}

static void release(void *context) {
  client *c = context;
  remove_client(c);
  if (!client_is_in_child(c)) {
    stop(c);
  } else {
    release_in_child(c);
  }
  client_release(c);
}

/* ---- The inbox ------------------------------------------------------------------------------- */

static void deliver(void *context, uint32_t event, const void *payload, size_t size) {
  client *c = context;
  const arrival *a = payload;
  const unsigned forks = process_forks();
  int64_t result = multicast_broadcaster_deliver(c->options.broadcaster, a->name, a->event,
                                                 a->size == 0 ? NULL : a->payload, a->size);
  (void)event, (void)size;
  if (forks != process_forks()) return;
  pthread_mutex_lock(&c->lock);
  ++*(result < 0 ? &c->stats.lost : &c->stats.delivered);
  pthread_mutex_unlock(&c->lock);
}

static void release_inbox(void *context) { client_release(context); }

static multicast_status create_inbox(client *c) {
  multicast_add_options how = multicast_add_options_default();
  multicast_delegate delegate = {deliver, c};
  multicast_status status = MULTICAST_OK;
  how.queue = c->options.queue;
  how.release = release_inbox;
  if (how.queue.id != 0) {
    c->inbox = multicast_create();
    if (c->inbox.id == 0) return MULTICAST_ERROR_OUT_OF_MEMORY;
    client_retain(c);
    status = multicast_add(c->inbox, delegate, &how, NULL); /* releases if it fails */
  }
  if (status != MULTICAST_OK) multicast_destroy(c->inbox);
  return status;
}

/* ---- Options --------------------------------------------------------------------------------- */

multicast_status multicast_nats_options_init(multicast_nats_options *options, size_t size) {
  return struct_init(options, size, OPTIONS_SIZE);
}

multicast_status multicast_nats_stats_init(multicast_nats_stats *stats, size_t size) {
  return struct_init(stats, size, STATS_SIZE);
}

/* Copies what this version knows. False: it cannot be read. */
static bool read_options(multicast_nats_options *to, const multicast_nats_options *from) {
  const uint32_t flags = MULTICAST_NATS_TLS | MULTICAST_NATS_REFUSE_OFFLINE;
  return struct_read(to, from, sizeof *to) && (to->flags & ~flags) == 0;
}

#define DEFAULT(field, value) ((field) = (field) == 0 ? (value) : (field))

static void set_defaults(multicast_nats_options *o) {
  if (o->servers == NULL) o->servers = "nats://localhost:4222";
  if (o->subject_prefix == NULL) o->subject_prefix = "multicast";
  if (o->ca_file != NULL || o->cert_file != NULL) o->flags |= MULTICAST_NATS_TLS;
  DEFAULT(o->ping_interval_s, 60);
  DEFAULT(o->capacity, 1024);
  DEFAULT(o->max_payload, PAYLOAD_MAX);
  DEFAULT(o->receive_bytes, 64u << 20);
  DEFAULT(o->reconnect_min_ns, ns_of_second / 10);
  DEFAULT(o->reconnect_max_ns, 30 * ns_of_second);
  DEFAULT(o->connect_timeout_ns, 10 * ns_of_second);
}

static bool begins_with(const char *text, const char *what) {
  return strncmp(text, what, strlen(what)) == 0;
}

/* Whether one address of so many bytes is like "nats://user:password@host:4222". */
static bool is_address(const char *address, size_t size) {
  const char *end = address + size, *host = address, *port, *at;
  size_t i;
  for (i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)address[i];
    /* libnats puts user and password into a JSON text as they are. */
    if (byte <= 0x20 || byte >= 0x7f || byte == '"' || byte == '\\') return false;
  }
  if (begins_with(address, "nats://") || begins_with(address, "tls://")) {
    host = strchr(address, ':') + 3;
  } else if (memmem(address, size, "://", 3) != NULL) {
    return false;
  }
  at = memrchr(host, '@', (size_t)(end - host));
  if (at != NULL) host = at + 1;
  port = memrchr(host, ':', (size_t)(end - host));
  if (port == NULL || memchr(port, ']', (size_t)(end - port)) != NULL) return end > host;
  return port > host && end - port > 1 && end - port <= 6 &&
         strspn(port + 1, "0123456789") == (size_t)(end - port - 1) && atoi(port + 1) > 0 &&
         atoi(port + 1) <= 65535;
}

/* Checks the addresses; has TLS used if one says so. */
static bool read_servers(multicast_nats_options *o) {
  const char *address = o->servers;
  int count = 0;
  for (;; ++address) {
    size_t size = strcspn(address, ",");
    if (++count > SERVERS_MAX || !is_address(address, size)) return false;
    if (begins_with(address, "tls://")) o->flags |= MULTICAST_NATS_TLS;
    address += size;
    if (*address == '\0') return true;
  }
}

/* With the defaults in place. */
static bool are_valid(multicast_nats_options *o) {
  const uint64_t longest = (uint64_t)1 << 62;
  return read_servers(o) && subject_is_prefix(o->subject_prefix) &&
         (o->user == NULL) == (o->password == NULL) && (o->token == NULL || o->user == NULL) &&
         (o->cert_file == NULL) == (o->key_file == NULL) && o->ping_interval_s <= 65535 &&
         o->capacity <= CAPACITY_MAX && o->max_payload <= PAYLOAD_MAX &&
         (o->overflow == MULTICAST_OVERFLOW_REFUSE ||
          o->overflow == MULTICAST_OVERFLOW_DROP_OLDEST) &&
         o->reconnect_min_ns <= o->reconnect_max_ns && o->reconnect_max_ns <= longest &&
         o->connect_timeout_ns <= longest;
}

/* The texts that are copied. An address may contain a secret, too. */
static const size_t option_texts[] = {
    offsetof(multicast_nats_options, servers),        offsetof(multicast_nats_options, client_name),
    offsetof(multicast_nats_options, subject_prefix), offsetof(multicast_nats_options, user),
    offsetof(multicast_nats_options, password),       offsetof(multicast_nats_options, token),
    offsetof(multicast_nats_options, ca_file),        offsetof(multicast_nats_options, cert_file),
    offsetof(multicast_nats_options, key_file),       offsetof(multicast_nats_options, tls_name)};
enum { TEXTS = sizeof option_texts / sizeof *option_texts };

static bool copy_texts(multicast_nats_options *o) { return texts_copy(o, option_texts, TEXTS); }
static void free_texts(multicast_nats_options *o) { texts_free(o, option_texts, TEXTS); }

/* ---- Connecting ------------------------------------------------------------------------------ */

static natsStatus set_servers(natsOptions *how, const char *servers) {
  const char *addresses[SERVERS_MAX];
  char *copy = strdup(servers), *rest = copy, *address;
  natsStatus status = NATS_NO_MEMORY;
  int count = 0;
  while ((address = strsep(&rest, ",")) != NULL) addresses[count++] = address;
  if (copy != NULL) status = natsOptions_SetServers(how, addresses, count);
  free(copy);
  return status;
}

/* False if a key is encrypted: OpenSSL would ask at the terminal. */
static bool is_readable_key(const char *file) {
  char line[256];
  bool is_plain = true;
  FILE *stream = fopen(file, "re");
  if (stream == NULL) return false;
  while (fgets(line, sizeof line, stream) != NULL) {
    if (strstr(line, "ENCRYPTED") != NULL) is_plain = false;
  }
  explicit_bzero(line, sizeof line);
  fclose(stream);
  return is_plain;
}

static natsStatus set_tls(natsOptions *how, const multicast_nats_options *o) {
  natsStatus status = natsOptions_SetSecure(how, true);
  if (status == NATS_OK && o->ca_file != NULL)
    status = natsOptions_LoadCATrustedCertificates(how, o->ca_file);
  if (status == NATS_OK && o->cert_file != NULL)
    status = is_readable_key(o->key_file)
                 ? natsOptions_LoadCertificatesChain(how, o->cert_file, o->key_file)
                 : NATS_SSL_ERROR;
  return status;
}

/* A text as it stands in JSON: libnats puts what it is given there as it is. NULL: no memory. */
static char *quote(const char *text) {
  char *quoted = malloc(6 * strlen(text) + 1), *end = quoted;
  if (quoted == NULL) return NULL;
  for (; *text != '\0'; ++text) {
    unsigned char byte = (unsigned char)*text;
    if (byte < 0x20 || byte == '"' || byte == '\\') end += sprintf(end, "\\u%04x", byte);
    else *end++ = *text;
  }
  *end = '\0';
  return quoted;
}

/* Who the client is. */
static natsStatus set_identity(natsOptions *how, const multicast_nats_options *o) {
  const char *texts[] = {o->client_name, o->user, o->password, o->token};
  char *quoted[4] = {NULL, NULL, NULL, NULL};
  natsStatus status = NATS_OK;
  int i;
  for (i = 0; i < 4; ++i) {
    if (texts[i] != NULL && (quoted[i] = quote(texts[i])) == NULL) status = NATS_NO_MEMORY;
  }
  if (status == NATS_OK && quoted[0] != NULL) status = natsOptions_SetName(how, quoted[0]);
  if (status == NATS_OK && quoted[1] != NULL)
    status = natsOptions_SetUserInfo(how, quoted[1], quoted[2]);
  if (status == NATS_OK && quoted[3] != NULL) status = natsOptions_SetToken(how, quoted[3]);
  for (i = 0; i < 4; ++i) text_free(quoted[i]);
  return status;
}

/* Tells libnats the options. The thread does what libnats would do on threads of its own. */
static natsStatus set_options(client *c) {
  const multicast_nats_options *o = &c->options;
  const uint64_t timeout_ms = o->connect_timeout_ns / ns_of_millisecond + 1;
  natsOptions *how = c->how;
  natsStatus status = set_servers(how, o->servers);
#define ALSO(call) status = status == NATS_OK ? (call) : status
  ALSO(natsOptions_SetNoRandomize(how, true));
  ALSO(natsOptions_SetIgnoreDiscoveredServers(how, true));
  ALSO(natsOptions_SetNoEcho(how, true));
  ALSO(natsOptions_SetAllowReconnect(how, false));
  ALSO(natsOptions_SetPingInterval(how, 0));
  ALSO(natsOptions_SetSendAsap(how, true));
  ALSO(natsOptions_UseGlobalMessageDelivery(how, true));
  ALSO(natsOptions_SetTimeout(how, timeout_ms < INT32_MAX ? (int64_t)timeout_ms : INT32_MAX));
  ALSO(set_identity(how, o));
  if (o->tls_name != NULL) ALSO(natsOptions_SetExpectedHostname(how, o->tls_name));
  if ((o->flags & MULTICAST_NATS_TLS) != 0) ALSO(set_tls(how, o));
  ALSO((natsStatus)session_set_callbacks(c));
#undef ALSO
  return status;
}

static multicast_status status_of(natsStatus status) {
  switch (status) {
    case NATS_OK: return MULTICAST_OK;
    case NATS_NO_MEMORY: return MULTICAST_ERROR_OUT_OF_MEMORY;
    case NATS_INVALID_ARG: return MULTICAST_ERROR_INVALID_ARGUMENT;
    default: return MULTICAST_ERROR_SYSTEM;
  }
}

/* Makes all that the client needs but its thread. */
static multicast_status prepare(client *c) {
  natsStatus status = natsOptions_Create(&c->how);
  if (status == NATS_OK) status = natsStatistics_Create(&c->counts);
  if (status == NATS_OK) status = set_options(c);
  if (status != NATS_OK) return status_of(status);
  c->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return c->wakeup < 0 ? MULTICAST_ERROR_SYSTEM : create_inbox(c);
}

static multicast_status start_thread(client *c) {
  int result;
  client_retain(c);
  /* Under the lock, so that the thread finds itself written down. */
  pthread_mutex_lock(&c->lock);
  result = process_start_thread(&c->thread, session_thread, c);
  if (result == 0) pthread_setname_np(c->thread, "multicast-nats");
  pthread_mutex_unlock(&c->lock);
  if (result != 0) client_release(c);
  return result == 0 ? MULTICAST_OK : MULTICAST_ERROR_SYSTEM;
}

/* A client with a lock and the options, and nothing else; NULL: out of memory. */
static client *create_client(const multicast_nats_options *options) {
  pthread_condattr_t attributes;
  client *c = calloc(1, sizeof *c);
  if (c == NULL) return NULL;
  c->options = *options;
  c->options.release = NULL; /* as long as this may fail, the caller releases */
  c->references = 1;
  c->wakeup = c->socket = -1;
  c->fork_count = process_forks();
  pthread_mutex_init(&c->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&c->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  if (copy_texts(&c->options)) return c;
  client_release(c);
  return NULL;
}

/* Starts a client that is ready. It may call functions of the caller before this returns. */
static multicast_status begin(client *c, const multicast_nats_options *options,
                              multicast_transport *out) {
  multicast_status status;
  if (!add_client(c)) return MULTICAST_ERROR_OUT_OF_MEMORY;
  *out = multicast_transport_default();
  out->context = c;
  out->publish = publish;
  out->subscribe = subscribe;
  out->unsubscribe = unsubscribe;
  out->release = release;
  c->options.release = options->release;
  status = start_thread(c);
  if (status == MULTICAST_OK) return status;
  c->options.release = NULL;
  remove_client(c);
  return status;
}

static multicast_status connect_with(multicast_nats_options *options, multicast_transport *out) {
  multicast_status status;
  client *c;
  pthread_once(&once, start);
  if (!is_ready) return MULTICAST_ERROR_SYSTEM;
  set_defaults(options);
  if (!are_valid(options)) return MULTICAST_ERROR_INVALID_ARGUMENT;
  if (!multicast_broadcaster_is_valid(options->broadcaster) ||
      (options->queue.id != 0 && !multicast_queue_is_valid(options->queue)))
    return MULTICAST_ERROR_INVALID_HANDLE;
  c = create_client(options);
  if (c == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  status = prepare(c);
  if (status == MULTICAST_OK) {
    status = begin(c, options, out);
    if (status != MULTICAST_OK && c->inbox.id != 0) multicast_destroy(c->inbox);
  }
  if (status != MULTICAST_OK) client_release(c);
  return status;
}

multicast_status multicast_nats_connect(const multicast_nats_options *options,
                                        multicast_transport *out) {
  multicast_status status = MULTICAST_ERROR_INVALID_ARGUMENT;
  multicast_nats_options copy;
  if (out != NULL) memset(out, 0, sizeof *out);
  if (!read_options(&copy, options)) return status;
  if (out != NULL) status = connect_with(&copy, out);
  if (status == MULTICAST_OK) return status;
  if (out != NULL) memset(out, 0, sizeof *out);
  if (copy.release != NULL) copy.release(copy.context);
  return status;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* What a call waits for: publications and changes of names up to these. */
typedef struct goal {
  uint64_t publication, change;
  uint64_t deadline;
} goal;

/* Under the lock. Waits for a change. False: the time is over. */
static bool wait_until(client *c, uint64_t deadline) {
  const struct timespec until = time_of_ns(deadline);
  return pthread_cond_timedwait(&c->changed, &c->lock, &until) != ETIMEDOUT;
}

/* A question to the server. libnats waits for the answer, on a thread: the call that asks must be
 * able to end before. */
typedef struct question {
  client *c;
  struct __natsConnection *connection;
  int64_t timeout_ms;
  natsStatus status;
  bool is_over, is_left; /* the one that comes second frees it */
} question;

static void *ask(void *argument) {
  question *q = argument;
  client *c = q->c;
  natsStatus status = natsConnection_FlushTimeout(q->connection, q->timeout_ms);
  bool is_left;
  pthread_mutex_lock(&c->lock);
  q->status = status;
  q->is_over = true;
  is_left = q->is_left;
  --c->flushes;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
  if (is_left) free(q);
  nats_ReleaseThreadMemory();
  client_release(c);
  return NULL;
}

/* Under the lock. NULL: no memory or no thread. */
static question *begin_question(client *c, const goal *g) {
  uint64_t now = now_ns(), ms = g->deadline > now ? (g->deadline - now) / ns_of_millisecond : 0;
  question *q = malloc(sizeof *q);
  pthread_t thread;
  if (q == NULL) return NULL;
  *q = (question){.c = c, .connection = c->connection};
  q->timeout_ms = ms < 3600000 ? (int64_t)ms + 1 : 3600000;
  client_retain(c);
  ++c->flushes;
  if (process_start_thread(&thread, ask, q) == 0) return q;
  --c->flushes;
  client_release(c); /* not the last one */
  free(q);
  return NULL;
}

/* Under the lock, which it gives up meanwhile. Waits for the server to answer; whether it has. */
static bool ask_server(client *c, const goal *g) {
  struct __natsConnection *connection = c->connection;
  question *q = begin_question(c, g);
  natsStatus status;
  if (q == NULL) {
    wait_until(c, now_ns() + 10 * ns_of_millisecond);
    return false;
  }
  while (!q->is_over && !c->is_stopping && wait_until(c, g->deadline)) {
  }
  status = q->is_over ? q->status : NATS_TIMEOUT;
  q->is_left = true;
  if (q->is_over) free(q);
  if (status == NATS_OK && c->connection == connection) return true;
  /* The connection has ended. The thread notices. */
  while (status != NATS_TIMEOUT && !c->is_stopping && c->connection == connection &&
         wait_until(c, g->deadline)) {
  }
  return false;
}

/* Under the lock. */
static multicast_status reach(client *c, const goal *g) {
  while (c->confirmed < g->publication || c->confirmed_changes < g->change) {
    if (c->is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
    if (now_ns() >= g->deadline) return MULTICAST_ERROR_TIMEOUT;
    if (c->connection == NULL || c->handed < g->publication || c->told < g->change) {
      wait_until(c, g->deadline);
    } else if (ask_server(c, g)) {
      if (c->confirmed < g->publication) c->confirmed = g->publication;
      if (c->confirmed_changes < g->change) c->confirmed_changes = g->change;
    }
  }
  return MULTICAST_OK;
}

multicast_status multicast_nats_flush(const multicast_transport *transport, uint64_t timeout_ns) {
  client *c = find_client(transport);
  multicast_status status = MULTICAST_ERROR_STATE;
  uint64_t now = now_ns();
  goal g;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  g.deadline = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
  if (!client_is_in_child(c) && !pthread_equal(pthread_self(), c->thread)) {
    pthread_mutex_lock(&c->lock);
    g.publication = c->stats.published;
    g.change = c->names.changes;
    status = reach(c, &g);
    pthread_mutex_unlock(&c->lock);
  }
  client_release(c);
  return status;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

multicast_status multicast_nats_get_stats(const multicast_transport *transport,
                                          multicast_nats_stats *out) {
  client *c = find_client(transport);
  multicast_status status = MULTICAST_ERROR_STATE;
  multicast_nats_stats stats;
  if (c == NULL) return MULTICAST_ERROR_INVALID_HANDLE;
  if (!client_is_in_child(c)) {
    pthread_mutex_lock(&c->lock);
    stats = c->stats;
    stats.names = (uint32_t)c->names.wanted;
    pthread_mutex_unlock(&c->lock);
    status = struct_write(out, &stats, sizeof stats) ? MULTICAST_OK
                                                     : MULTICAST_ERROR_INVALID_ARGUMENT;
  }
  client_release(c);
  return status;
}
