// Macros from Apple's AssertMacros.h, and some macros from complex.h, Arduino, termios.h and other
// headers. The macros are copied, because Debian does not package some of these headers, and tests
// cannot include the others.
#define check(x)
#define check_noerr(x)
#define check_string(x, y)
#define ncheck(x)
#define ncheck_noerr(x)
#define verify(x)
#define verify_action(x, y)
#define verify_noerr(x)
#define verify_string(x, y)
#define nverify(x)
#define nverify_noerr(x)
#define require(x, y)
#define require_action(x, y, z)
#define require_noerr(x, y)
#define require_quiet(x, y)
#define require_string(x, y, z)
#define nrequire(x, y)
#define nrequire_action(x, y, z)
#define B0 0
#define B1 1
#define F(x) x
#define I _Complex_I
#define bit(x) x
#define foreach
#define forever
#define mask(x) x
#define round(x) x
