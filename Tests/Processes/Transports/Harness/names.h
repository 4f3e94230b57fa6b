/* Defines common names for the functions of a transport's library, so that the same tests work with
 * all transports. library.h in the transport's folder defines TRANSPORT(name) and
 * TRANSPORT_CODE(NAME), which expand to the library's own names, and then includes this file. */

#ifndef NAMES_H
#define NAMES_H

typedef TRANSPORT(options) transport_options;
typedef TRANSPORT(stats) transport_stats;
typedef TRANSPORT(state) transport_state;
typedef TRANSPORT(question) transport_question;

#define transport_connect TRANSPORT(connect)
#define transport_flush TRANSPORT(flush)
#define transport_answer TRANSPORT(answer)
#define transport_reply TRANSPORT(reply)
#define transport_ask TRANSPORT(ask)
#define transport_get_stats TRANSPORT(get_stats)
#define transport_options_default TRANSPORT(options_default)
#define transport_stats_default TRANSPORT(stats_default)
#define TRANSPORT_OPTIONS_INIT TRANSPORT_CODE(OPTIONS_INIT)
#define TRANSPORT_STATS_INIT TRANSPORT_CODE(STATS_INIT)
#define TRANSPORT_CONNECTED TRANSPORT_CODE(CONNECTED)
#define TRANSPORT_LOST TRANSPORT_CODE(LOST)
#define TRANSPORT_REFUSED TRANSPORT_CODE(REFUSED)
#define TRANSPORT_SUBSCRIPTION_REFUSED TRANSPORT_CODE(SUBSCRIPTION_REFUSED)
#define TRANSPORT_PUBLICATION_REFUSED TRANSPORT_CODE(PUBLICATION_REFUSED)
#define TRANSPORT_REFUSE_OFFLINE TRANSPORT_CODE(REFUSE_OFFLINE)

#endif
