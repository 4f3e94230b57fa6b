/* What many steps need: if the condition holds, the body; if not, nothing. */

#define when(condition, body) if :: condition -> body :: else fi
