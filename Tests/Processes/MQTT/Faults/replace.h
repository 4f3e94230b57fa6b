/* The compiler includes this file before each source file of libmulticast-mqtt. The macros in this
 * file redirect the library's requests to requests.c. */

#ifndef REPLACE_H
#define REPLACE_H

#include "../../Transports/Faults/replace.h"
#include "requests.h"

#define mosquitto_lib_init ask_library_init
#define mosquitto_new ask_new_client
#define mosquitto_destroy give_back_client
#define mosquitto_username_pw_set ask_user
#define mosquitto_tls_set ask_tls_settings
#define mosquitto_property_add_int32 ask_property
#define mosquitto_property_add_binary(...) \
  (is_refused(PROPERTY, true) ? MOSQ_ERR_NOMEM : mosquitto_property_add_binary(__VA_ARGS__))
#define mosquitto_property_add_string(...) \
  (is_refused(PROPERTY, true) ? MOSQ_ERR_NOMEM : mosquitto_property_add_string(__VA_ARGS__))
#define mosquitto_property_read_binary ask_binary
#define mosquitto_property_read_string ask_string
#define mosquitto_connect_bind_v5 ask_connection
#define mosquitto_publish_v5 ask_publication
#define mosquitto_subscribe_v5 ask_subscription
#define mosquitto_unsubscribe ask_cancellation
#define mosquitto_loop_read ask_reading

#endif
