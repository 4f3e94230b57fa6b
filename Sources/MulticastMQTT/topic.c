#include "mqtt.h"

const coding topic_coding = {'/', '#', "+#/$%", true};
