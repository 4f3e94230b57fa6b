/* The compiler includes this file before each source file of libmulticast-nats. The macros in this
 * file redirect the library's requests to requests.c. */

#ifndef REPLACE_H
#define REPLACE_H

#include "../../Transports/Faults/replace.h"
#include "requests.h"

#define natsOptions_Create ask_options
#define natsOptions_Destroy give_back_options
#define natsStatistics_Create ask_statistics
#define natsStatistics_Destroy give_back_statistics
#define natsConnection_Connect ask_connection
#define natsConnection_Destroy give_back_connection
#define natsConnection_Subscribe ask_subscription
#define natsSubscription_Destroy give_back_subscription
#define natsMsg_GetDataLength look_at_message

/* Makes the call, unless the test refuses it. */
#define UNLESS_REFUSED(kind, call) (refuses(kind) ? what_libnats_says() : (call))

#define nats_Open(...) UNLESS_REFUSED(LIBRARY_INIT, nats_Open(__VA_ARGS__))
#define natsOptions_SetServers(...) UNLESS_REFUSED(OPTION, natsOptions_SetServers(__VA_ARGS__))
#define natsOptions_SetNoRandomize(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetNoRandomize(__VA_ARGS__))
#define natsOptions_SetIgnoreDiscoveredServers(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetIgnoreDiscoveredServers(__VA_ARGS__))
#define natsOptions_SetNoEcho(...) UNLESS_REFUSED(OPTION, natsOptions_SetNoEcho(__VA_ARGS__))
#define natsOptions_SetAllowReconnect(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetAllowReconnect(__VA_ARGS__))
#define natsOptions_SetPingInterval(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetPingInterval(__VA_ARGS__))
#define natsOptions_SetSendAsap(...) UNLESS_REFUSED(OPTION, natsOptions_SetSendAsap(__VA_ARGS__))
#define natsOptions_UseGlobalMessageDelivery(...) \
  UNLESS_REFUSED(OPTION, natsOptions_UseGlobalMessageDelivery(__VA_ARGS__))
#define natsOptions_SetTimeout(...) UNLESS_REFUSED(OPTION, natsOptions_SetTimeout(__VA_ARGS__))
#define natsOptions_SetName(...) UNLESS_REFUSED(OPTION, natsOptions_SetName(__VA_ARGS__))
#define natsOptions_SetUserInfo(...) UNLESS_REFUSED(OPTION, natsOptions_SetUserInfo(__VA_ARGS__))
#define natsOptions_SetToken(...) UNLESS_REFUSED(OPTION, natsOptions_SetToken(__VA_ARGS__))
#define natsOptions_SetExpectedHostname(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetExpectedHostname(__VA_ARGS__))
#define natsOptions_SetSecure(...) UNLESS_REFUSED(OPTION, natsOptions_SetSecure(__VA_ARGS__))
#define natsOptions_LoadCATrustedCertificates(...) \
  UNLESS_REFUSED(OPTION, natsOptions_LoadCATrustedCertificates(__VA_ARGS__))
#define natsOptions_LoadCertificatesChain(...) \
  UNLESS_REFUSED(OPTION, natsOptions_LoadCertificatesChain(__VA_ARGS__))
#define natsOptions_SetEventLoop(...) UNLESS_REFUSED(OPTION, natsOptions_SetEventLoop(__VA_ARGS__))
#define natsOptions_SetErrorHandler(...) \
  UNLESS_REFUSED(OPTION, natsOptions_SetErrorHandler(__VA_ARGS__))
#define natsOptions_SetClosedCB(...) UNLESS_REFUSED(OPTION, natsOptions_SetClosedCB(__VA_ARGS__))
#define natsConnection_Publish(...) \
  UNLESS_REFUSED(PUBLICATION, natsConnection_Publish(__VA_ARGS__))
#define natsConnection_PublishRequest(...) \
  UNLESS_REFUSED(PUBLICATION, natsConnection_PublishRequest(__VA_ARGS__))
#define natsSubscription_SetPendingLimits(...) \
  UNLESS_REFUSED(LIMITS, natsSubscription_SetPendingLimits(__VA_ARGS__))
#define natsSubscription_SetOnCompleteCB(...) \
  UNLESS_REFUSED(COMPLETION, natsSubscription_SetOnCompleteCB(__VA_ARGS__))
#define natsSubscription_Unsubscribe(...) \
  UNLESS_REFUSED(CANCELLATION, natsSubscription_Unsubscribe(__VA_ARGS__))
#define natsSubscription_GetPending(...) \
  UNLESS_REFUSED(PENDING, natsSubscription_GetPending(__VA_ARGS__))
#define natsConnection_GetStats(...) \
  UNLESS_REFUSED(COUNTS, natsConnection_GetStats(__VA_ARGS__))
#define natsStatistics_GetCounts(...) \
  UNLESS_REFUSED(COUNTS, natsStatistics_GetCounts(__VA_ARGS__))
#define natsConnection_GetConnectedUrl(...) \
  UNLESS_REFUSED(URL, natsConnection_GetConnectedUrl(__VA_ARGS__))
#define natsConnection_FlushTimeout(...) \
  UNLESS_REFUSED(QUESTION, natsConnection_FlushTimeout(__VA_ARGS__))

#endif
