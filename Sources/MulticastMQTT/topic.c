#include "client.h"

const coding topic_coding = {'/', '#', "+#/$%", true};
