/* The engine of libmulticast-nats. Implements options, the setup of libnats, flushing and
 * statistics. */

#include "nats.h"

#define TRANSPORT(name) multicast_nats_##name
#include "../Common/exports.h"

#include <nats/nats.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
  OPTIONS_SIZE = 176, /* in version 1.1 */
  STATS_SIZE = 120,
  PAYLOAD_MAX = 1 << 28,
  SERVERS_MAX = 64
};
_Static_assert(sizeof(multicast_nats_options) == OPTIONS_SIZE, "the header says so");
_Static_assert(sizeof(multicast_nats_stats) == STATS_SIZE, "the header says so");

/* ---- The process ----------------------------------------------------------------------------- */

static bool start(void) {
  const struct sched_param none = {.sched_priority = 0};
  const bool is_usual = sched_getscheduler(0) == SCHED_OTHER;
  bool is_ready;
  struct sigaction kept;
  sigset_t before;
  process_block_signals(&before);
  /* nats_Open() makes the process ignore SIGPIPE. Restore the previous action, which is safe
   * because the client's threads block the signal. */
  sigaction(SIGPIPE, NULL, &kept);
  /* nats_Open() starts a thread that frees messages, and libnats wakes that thread for almost every
   * message. The new thread inherits the policy SCHED_BATCH, so it does not preempt the thread that
   * wakes it, and frees many messages whenever it runs. */
  if (is_usual) sched_setscheduler(0, SCHED_BATCH, &none);
  is_ready = nats_Open(-1) == NATS_OK;
  if (is_usual) sched_setscheduler(0, SCHED_OTHER, &none);
  sigaction(SIGPIPE, &kept, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return is_ready;
}

/* ---- Options --------------------------------------------------------------------------------- */

static void set_defaults(multicast_nats_options *o) {
  if (o->servers == NULL) o->servers = "nats://localhost:4222";
  if (o->subject_prefix == NULL) o->subject_prefix = "multicast";
  if (o->ca_file != NULL || o->cert_file != NULL) o->flags |= MULTICAST_NATS_TLS;
  if (o->ping_interval_s == 0) o->ping_interval_s = 60;
  if (o->receive_bytes == 0) o->receive_bytes = 64u << 20;
}

static bool begins_with(const char *text, const char *what) {
  return strncmp(text, what, strlen(what)) == 0;
}

/* Returns whether an address has the form "nats://user:password@host:4222". */
static bool is_address(const char *address, size_t size) {
  const char *end = address + size, *host = address, *port, *at;
  size_t i;
  for (i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)address[i];
    /* Refuse these bytes, because libnats copies the user and password into JSON unescaped. */
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

/* Checks the addresses, and sets the flag for TLS if an address begins with "tls://". */
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

/* Called after set_defaults(). */
static bool are_valid(multicast_nats_options *o) {
  return read_servers(o) && subject_is_prefix(o->subject_prefix) &&
         (o->user == NULL) == (o->password == NULL) && (o->token == NULL || o->user == NULL) &&
         (o->cert_file == NULL) == (o->key_file == NULL) && o->ping_interval_s <= 65535;
}

static bool settle(void *options, settings *s) {
  multicast_nats_options *o = options;
  set_defaults(o);
  *s = (settings){SETTINGS_OF_BROKER(o, MULTICAST_NATS_REFUSE_OFFLINE)};
  return are_valid(o);
}

/* The offsets of the strings that prepare() copies. Server addresses may also contain passwords. */
static const size_t option_texts[] = {
    offsetof(multicast_nats_options, servers),        offsetof(multicast_nats_options, client_name),
    offsetof(multicast_nats_options, subject_prefix), offsetof(multicast_nats_options, user),
    offsetof(multicast_nats_options, password),       offsetof(multicast_nats_options, token),
    offsetof(multicast_nats_options, ca_file),        offsetof(multicast_nats_options, cert_file),
    offsetof(multicast_nats_options, key_file),       offsetof(multicast_nats_options, tls_name)};
enum { TEXTS = sizeof option_texts / sizeof *option_texts };

/* ---- The engine ------------------------------------------------------------------------------ */

static size_t write_return(const client *base, char *subject, origin to) {
  (void)base;
  subject_write_return(subject, to);
  return strlen(subject);
}

static void free_client(client *base) {
  nats_client *c = (nats_client *)base;
  /* The child of a fork does not free libnats's objects, which may be inconsistent. */
  if (!client_is_in_child(base)) {
    natsOptions_Destroy(c->how);
    natsStatistics_Destroy(c->counts);
    while (c->refusals != NULL) {
      refusal *r = c->refusals;
      c->refusals = r->next;
      free(r);
    }
    pthread_mutex_destroy(&c->gate);
  }
  texts_free(&c->texts);
}

static void *free_on_thread(void *c) {
  client_free(c);
  nats_ReleaseThreadMemory();
  return NULL;
}

void client_release_elsewhere(nats_client *c) {
  pthread_t thread;
  if (!client_drop(&c->base)) return;
  if ((c->base.settings.release == NULL && c->base.answered.count == 0) ||
      process_start_thread(&thread, free_on_thread, c) != 0)
    client_free(&c->base);
}

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

/* Returns false if a key cannot be read or is encrypted, because OpenSSL would ask for the password
 * of an encrypted key at the terminal. */
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

/* Escapes a text for JSON, which libnats does not do. Returns NULL if there is no memory. */
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

/* Sets the client's name and credentials. */
static natsStatus set_identity(natsOptions *how, const multicast_nats_options *o) {
  const char *given[] = {o->client_name, o->user, o->password, o->token};
  char *quoted[4] = {NULL, NULL, NULL, NULL};
  natsStatus status = NATS_OK;
  int i;
  for (i = 0; i < 4; ++i) {
    if (given[i] != NULL && (quoted[i] = quote(given[i])) == NULL) status = NATS_NO_MEMORY;
  }
  if (status == NATS_OK && quoted[0] != NULL) status = natsOptions_SetName(how, quoted[0]);
  if (status == NATS_OK && quoted[1] != NULL)
    status = natsOptions_SetUserInfo(how, quoted[1], quoted[2]);
  if (status == NATS_OK && quoted[3] != NULL) status = natsOptions_SetToken(how, quoted[3]);
  for (i = 0; i < 4; ++i) text_free(quoted[i]);
  return status;
}

/* Sets the options of libnats. The options prevent libnats's own threads from doing work that the
 * client's thread does instead, such as reconnecting and sending PINGs. */
static natsStatus set_options(nats_client *c) {
  const multicast_nats_options *o = &c->options;
  const uint64_t timeout_ms = c->base.settings.connect_timeout_ns / ns_of_millisecond + 1;
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

static multicast_status prepare(client *base, const void *options) {
  nats_client *c = (nats_client *)base;
  natsStatus status;
  c->options = *(const multicast_nats_options *)options;
  c->socket = -1;
  pthread_mutex_init(&c->gate, NULL);
  if (!texts_copy(&c->texts, &c->options, option_texts, TEXTS))
    return MULTICAST_ERROR_OUT_OF_MEMORY;
  base->settings.prefix = c->options.subject_prefix;
  if (getrandom(&base->id, sizeof base->id, 0) != sizeof base->id) return MULTICAST_ERROR_SYSTEM;
  subject_write_return(base->return_address, (origin){base->id, 0});
  strcpy(strrchr(base->return_address, '.'), ".*");
  status = natsOptions_Create(&c->how);
  if (status == NATS_OK) status = natsStatistics_Create(&c->counts);
  if (status == NATS_OK) status = set_options(c);
  return status_of(status);
}

static const engine transport_engine = {
    ENGINE_OF_BROKER,
    .coding = &subject_coding,
    .thread_name = "multicast-nats",
    .options_size = sizeof(multicast_nats_options),
    .has_prefixes = true,
    .flags = MULTICAST_NATS_TLS | MULTICAST_NATS_REFUSE_OFFLINE,
    .size = sizeof(nats_client),
    .default_payload = PAYLOAD_MAX,
    .largest_payload = PAYLOAD_MAX,
};

/* ---- Waiting --------------------------------------------------------------------------------- */

/* A PING that a flush sends. A separate thread waits in libnats for the answer, because the flush
 * must be able to return before the answer arrives. */
typedef struct ping {
  nats_client *c;
  struct __natsConnection *connection;
  int64_t timeout_ms;
  natsStatus status;
  bool is_over, is_left; /* set by the thread and by the flush; the last one frees the ping */
} ping;

static void *await_pong(void *argument) {
  ping *p = argument;
  nats_client *c = p->c;
  natsStatus status = natsConnection_FlushTimeout(p->connection, p->timeout_ms);
  bool is_left;
  pthread_mutex_lock(&c->base.lock);
  p->status = status;
  p->is_over = true;
  is_left = p->is_left;
  --c->flushes;
  pthread_cond_broadcast(&c->base.changed);
  pthread_mutex_unlock(&c->base.lock);
  if (is_left) free(p);
  nats_ReleaseThreadMemory();
  client_release(&c->base);
  return NULL;
}

/* Called under the lock. Returns NULL if there is no memory or no thread. */
static ping *begin_ping(nats_client *c, uint64_t deadline) {
  uint64_t now = now_ns(), ms = deadline > now ? (deadline - now) / ns_of_millisecond : 0;
  ping *p = malloc(sizeof *p);
  pthread_t thread;
  if (p == NULL) return NULL;
  *p = (ping){.c = c, .connection = c->connection};
  p->timeout_ms = ms < 3600000 ? (int64_t)ms + 1 : 3600000;
  client_retain(&c->base);
  ++c->flushes;
  if (process_start_thread(&thread, await_pong, p) == 0) return p;
  --c->flushes;
  client_release(&c->base); /* not the last reference */
  free(p);
  return NULL;
}

/* Called under the lock, which it releases while it waits. Sends a PING and waits for the answer.
 * Returns whether the server has answered. */
static bool ask_server(nats_client *c, uint64_t deadline) {
  struct __natsConnection *connection = c->connection;
  ping *p = begin_ping(c, deadline);
  natsStatus status = NATS_NO_MEMORY;
  if (p != NULL) {
    while (!p->is_over && !c->base.is_stopping && client_wait_until(&c->base, deadline)) {
    }
    status = p->is_over ? p->status : NATS_TIMEOUT;
    p->is_left = true;
    if (p->is_over) free(p);
  }
  if (status == NATS_OK && c->connection == connection) return true;
  /* Either there was no memory, or the connection has ended. Wait a moment before the next attempt,
   * so that the client's thread can detect the end of the connection. */
  if (status != NATS_TIMEOUT) client_wait_until(&c->base, now_ns() + 10 * ns_of_millisecond);
  return false;
}

static multicast_status wait_until_flushed(client *base, uint64_t deadline) {
  nats_client *c = (nats_client *)base;
  const uint64_t ticket = base->outbox.tickets, change = client_changes(base);
  if (c->confirmed < c->unsure) base->flushing->has_lost = true; /* this flush is the first */
  while (c->confirmed < ticket || c->confirmed_changes < change) {
    if (base->is_stopping) return MULTICAST_ERROR_INVALID_HANDLE;
    if (now_ns() >= deadline) return MULTICAST_ERROR_TIMEOUT;
    if (c->connection == NULL || c->handed < ticket || c->told < change) {
      client_wait_until(base, deadline);
    } else if (ask_server(c, deadline)) {
      if (c->confirmed < ticket) c->confirmed = ticket;
      if (c->confirmed_changes < change) c->confirmed_changes = change;
    }
  }
  return MULTICAST_OK;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

static void fill_stats(const client *base, void *stats) {
  multicast_nats_stats *out = stats;
  FILL_STATS_OF_BROKER(base, out);
  out->connected = base->is_connected;
  out->max_payload = base->largest;
  out->sending = base->counts.sending;
}
