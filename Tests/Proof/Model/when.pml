/* What many steps need: if the condition holds, the body; if not, nothing. */

#define when(condition, body) if :: condition -> body :: else fi

/* Code of a variant or a mutation. A name counts if it is defined, and not as 0. */

#define IF(name, ...) JOIN(IF_, IS_ON(name))(__VA_ARGS__)
#define UNLESS(name, ...) JOIN(UNLESS_, IS_ON(name))(__VA_ARGS__)
#define EITHER(name, yes, ...) JOIN(EITHER_, IS_ON(name))(yes, __VA_ARGS__)
#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define UNLESS_0(...) __VA_ARGS__
#define UNLESS_1(...)
#define EITHER_0(yes, ...) __VA_ARGS__
#define EITHER_1(yes, ...) yes
#define JOIN(a, b) JOIN_(a, b)
#define JOIN_(a, b) a##b
#define IS_ON(name) IS_ON_OF(name)
#define IS_ON_OF(value) SECOND(ON_##value 1, 0)
#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define SECOND_OF(first, second, ...) second
#define ON_1 0,
#define ON_2 0,
#define ON_3 0,

/* A thread: its locals, and what it does. `done` counts those that have ended. */
#define THREAD(name, locals, ...) proctype name() { locals; __VA_ARGS__; done++ }
