#include "requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ask_library_init(void) {
  return is_refused(LIBRARY_INIT, true) ? MOSQ_ERR_NOMEM : mosquitto_lib_init();
}

struct mosquitto *ask_new_client(const char *id, bool is_clean, void *object) {
  if (is_refused(NEW_CLIENT, true)) {
    errno = ENOMEM;
    return NULL;
  }
  struct mosquitto *m = mosquitto_new(id, is_clean, object);
  if (m != NULL) count_objects(1);
  return m;
}

void give_back_client(struct mosquitto *m) {
  count_objects(-1);
  mosquitto_destroy(m);
}

int ask_user(struct mosquitto *m, const char *user, const char *password) {
  return is_refused(USER, true) ? MOSQ_ERR_NOMEM : mosquitto_username_pw_set(m, user, password);
}

int ask_tls_settings(struct mosquitto *m, const char *ca_file, const char *ca_path,
                     const char *cert_file, const char *key_file,
                     int (*password)(char *buffer, int size, int is_writing, void *object)) {
  return is_refused(TLS_SETTINGS, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_tls_set(m, ca_file, ca_path, cert_file, key_file, password);
}

int ask_property(mosquitto_property **all, int identifier, uint32_t value) {
  return is_refused(PROPERTY, true) ? MOSQ_ERR_NOMEM
                                 : mosquitto_property_add_int32(all, identifier, value);
}

/* Copies the data to memory that the library frees with give_back(), so that the test can refuse
 * and count this memory. */
const mosquitto_property *ask_binary(const mosquitto_property *all, int identifier, void **out,
                                     uint16_t *size, bool skips) {
  void *read = NULL;
  const mosquitto_property *at =
      mosquitto_property_read_binary(all, identifier, &read, size, skips);
  if (read != NULL && (*out = ask_malloc(*size)) != NULL) memcpy(*out, read, *size);
  free(read);
  return at;
}

const mosquitto_property *ask_string(const mosquitto_property *all, int identifier, char **out,
                                     bool skips) {
  char *read = NULL;
  const mosquitto_property *at = mosquitto_property_read_string(all, identifier, &read, skips);
  if (read != NULL) *out = ask_strdup(read);
  free(read);
  return at;
}

int ask_connection(struct mosquitto *m, const char *host, int port, int keep_alive,
                   const char *address, const mosquitto_property *all) {
  return is_refused(CONNECTION, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_connect_bind_v5(m, host, port, keep_alive, address, all);
}

int ask_publication(struct mosquitto *m, int *id, const char *topic, int size, const void *payload,
                    int qos, bool is_retained, const mosquitto_property *all) {
  return is_refused(PUBLICATION, true)
             ? MOSQ_ERR_NOMEM
             : mosquitto_publish_v5(m, id, topic, size, payload, qos, is_retained, all);
}

int ask_subscription(struct mosquitto *m, int *id, const char *filter, int qos, int options,
                     const mosquitto_property *all) {
  return is_refused(SUBSCRIPTION, true) ? MOSQ_ERR_NOMEM
                                     : mosquitto_subscribe_v5(m, id, filter, qos, options, all);
}

int ask_cancellation(struct mosquitto *m, int *id, const char *filter) {
  return is_refused(CANCELLATION, true) ? MOSQ_ERR_NOMEM : mosquitto_unsubscribe(m, id, filter);
}

int ask_reading(struct mosquitto *m, int packets) {
  return is_refused(READING, true) ? MOSQ_ERR_NOMEM : mosquitto_loop_read(m, packets);
}
