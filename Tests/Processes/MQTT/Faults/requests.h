/* The requests of libmulticast-mqtt to libmosquitto, which tests can refuse. */

#ifndef REQUESTS_H
#define REQUESTS_H

#include "../../Transports/Faults/requests.h"

#include <mosquitto.h>

enum {
  NEW_CLIENT = FIRST_OF_LIBRARY,
  USER,
  TLS_SETTINGS,
  PROPERTY,
  CONNECTION,
  PUBLICATION,
  SUBSCRIPTION,
  CANCELLATION,
  READING
};

/* ---- For the library: see replace.h ---------------------------------------------------------- */

int ask_library_init(void);
struct mosquitto *ask_new_client(const char *id, bool is_clean, void *object);
void give_back_client(struct mosquitto *m);
int ask_user(struct mosquitto *m, const char *user, const char *password);
int ask_tls_settings(struct mosquitto *m, const char *ca_file, const char *ca_path,
                     const char *cert_file, const char *key_file,
                     int (*password)(char *buffer, int size, int is_writing, void *object));
int ask_property(mosquitto_property **all, int identifier, uint32_t value);
const mosquitto_property *ask_binary(const mosquitto_property *all, int identifier, void **out,
                                     uint16_t *size, bool skips);
const mosquitto_property *ask_string(const mosquitto_property *all, int identifier, char **out,
                                     bool skips);
int ask_connection(struct mosquitto *m, const char *host, int port, int keep_alive,
                   const char *address, const mosquitto_property *all);
int ask_publication(struct mosquitto *m, int *id, const char *topic, int size, const void *payload,
                    int qos, bool is_retained, const mosquitto_property *all);
int ask_subscription(struct mosquitto *m, int *id, const char *filter, int qos, int options,
                     const mosquitto_property *all);
int ask_cancellation(struct mosquitto *m, int *id, const char *filter);
int ask_reading(struct mosquitto *m, int packets);

#endif
