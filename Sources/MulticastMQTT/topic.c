#include "mqtt.h"

const coding topic_coding = {
    .separator = '/',
    .wildcard = '#',
    .special = CODING_BIT('+') | CODING_BIT('#') | CODING_BIT('/') | CODING_BIT('$') |
               CODING_BIT('%'),
    .may_lack_event = true,
};
