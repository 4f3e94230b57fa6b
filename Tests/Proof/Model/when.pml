/* Executes the body if the condition holds, and does nothing otherwise. */

#define when(condition, body) if :: condition -> body :: else fi

/* Select the code of a variant or a mutation. A name is on if it is defined as anything other than
 * 0. */

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

/* A thread with its local variables and its code. `done` counts the threads that have ended. */
#define THREAD(name, locals, ...) proctype name() { locals; __VA_ARGS__; done++ }
